// The plug-in: which passes it has, and where in Clang's pipeline they stand.
//
//   PERDURE_PASS=trace clang-19 -fpass-plugin=PerdurePass.so …      behind the optimisations
//   PERDURE_PASS=ipv-check clang-19 -fpass-plugin=PerdurePass.so …  in front of them
//   opt-19 -load-pass-plugin=PerdurePass.so -passes=perdure-trace …
//
// PERDURE_PASS lists the passes behind commas, in any order; without it, it is `trace`. It is an
// environment variable because options of plug-ins are not known yet when Clang and lld read
// theirs.
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/Process.h>

#include <array>

#include "ipv_check.hpp"
#include "trace.hpp"

namespace {

constexpr std::array<llvm::StringLiteral, 2> known_passes = {"trace", "ipv-check"};

// What PERDURE_PASS asks for.
llvm::StringSet<> wanted_passes() {
  llvm::StringSet<> wanted;
  const std::string text = llvm::sys::Process::GetEnv("PERDURE_PASS").value_or("trace");
  llvm::SmallVector<llvm::StringRef, 4> names;
  llvm::StringRef(text).split(names, ',', -1, false);
  for (llvm::StringRef name : names) {
    if (!llvm::is_contained(known_passes, name)) {
      llvm::report_fatal_error("PERDURE_PASS=" + llvm::Twine(text) + ": no pass is called '" +
                                   name + "'; there are " + llvm::join(known_passes, ", "),
                               false);
    }
    wanted.insert(name);
  }
  return wanted;
}

bool add_pass(llvm::StringRef name, llvm::ModulePassManager& passes) {
  if (name == "perdure-trace") {
    passes.addPass(perdure::TracePass());
  } else if (name == "perdure-ipv-check") {
    passes.addPass(perdure::IpvCheckPass());
  } else {
    return false;
  }
  return true;
}

void register_passes(llvm::PassBuilder& builder) {
  builder.registerPipelineParsingCallback(
      [](llvm::StringRef name, llvm::ModulePassManager& passes,
         llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) { return add_pass(name, passes); });
  const llvm::StringSet<> wanted = wanted_passes();
  if (wanted.contains("ipv-check")) {
    builder.registerPipelineEarlySimplificationEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
          passes.addPass(perdure::IpvCheckPass());
        });
  }
  if (wanted.contains("trace")) {
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
          passes.addPass(perdure::TracePass());
        });
  }
}

}  // namespace

extern "C" __attribute__((visibility("default"))) llvm::PassPluginLibraryInfo
llvmGetPassPluginInfo() {
  return {LLVM_PLUGIN_API_VERSION, "Perdure", "1", register_passes};
}
