// The plug-in: which passes it has, and where in Clang's pipeline they stand.
//
//   clang-19 -fpass-plugin=PerdurePass.so …              trace, behind the optimisations
//   PERDURE_PASS=ipv clang-19 -fpass-plugin=…            ipv, in front of vectorisation
//   opt-19 -load-pass-plugin=PerdurePass.so -passes=perdure-trace …
//
// Options come from the environment (ipv.hpp): those of -mllvm are read before plug-ins are there.
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>

#include "ipv.hpp"
#include "trace.hpp"

namespace {

void register_passes(llvm::PassBuilder& builder) {
  const auto options = perdure::PassOptions::from_environment();
  builder.registerPipelineParsingCallback(
      [options](llvm::StringRef name, llvm::ModulePassManager& passes,
                llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        if (name == "perdure-trace") {
          passes.addPass(perdure::TracePass());
        } else if (name == "perdure-ipv") {
          passes.addPass(perdure::IpvPass(options));
        } else {
          return false;
        }
        return true;
      });
  if (options.trace) {
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
          passes.addPass(perdure::TracePass());
        });
  }
  if (options.ipv) {
    builder.registerOptimizerEarlyEPCallback(
        [options](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
          passes.addPass(perdure::IpvPass(options));
        });
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Perdure", "1", register_passes};
}
