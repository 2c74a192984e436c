// SPDX-License-Identifier: BSD-3-Clause
#include "trace.hpp"

#include <llvm/Analysis/TargetLibraryInfo.h>

#include "accesses.hpp"
#include "trace_access.hpp"

namespace perdure {
namespace {

void instrument(llvm::Function& function, const TraceSymbols& symbols,
                const llvm::TargetLibraryInfo& library) {
  const std::vector<llvm::Instruction*> accesses = instructions_that_access(function);
  if (accesses.empty()) return;
  forget_promises(function);
  AccessEmitter emitter(function, symbols);
  visit_accesses(function, accesses, library, "perdure trace", emitter);
}

}  // namespace

llvm::PreservedAnalyses TracePass::run(llvm::Module& module,
                                       llvm::ModuleAnalysisManager& analyses) {
  // Once: a module that comes through the pipeline again (link-time optimisation) has it already.
  if (module.getNamedGlobal("perdure_trace_ways") != nullptr) {
    return llvm::PreservedAnalyses::all();
  }
  auto& of_functions =
      analyses.getResult<llvm::FunctionAnalysisManagerModuleProxy>(module).getManager();
  const TraceSymbols symbols(module);
  for (llvm::Function& function : module) {
    if (is_left_alone(function, "perdure_trace_")) continue;
    instrument(function, symbols, of_functions.getResult<llvm::TargetLibraryAnalysis>(function));
  }
  return llvm::PreservedAnalyses::none();
}

}  // namespace perdure
