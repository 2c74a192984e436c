// The plug-in: which passes it has, and where in Clang's pipeline they stand.
//
//   clang-19 -fpass-plugin=PerdurePass.so …              trace, behind the optimisations
//   opt-19 -load-pass-plugin=PerdurePass.so -passes=perdure-trace …
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include "trace.hpp"

namespace {

void register_passes(llvm::PassBuilder& builder) {
  builder.registerPipelineParsingCallback([](llvm::StringRef name, llvm::ModulePassManager& passes,
                                             llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
    if (name != "perdure-trace") return false;
    passes.addPass(perdure::TracePass());
    return true;
  });
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
        passes.addPass(perdure::TracePass());
      });
}

}  // namespace

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Perdure", "1", register_passes};
}
