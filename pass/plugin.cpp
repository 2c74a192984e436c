// SPDX-License-Identifier: BSD-3-Clause
//
// The plug-in: which passes it has, and where in Clang's pipeline they run.
//
//   PERDURE_PASS=trace clang-19 -fpass-plugin=PerdurePass.so …      after the optimisations
//   PERDURE_PASS=ipv clang-19 -fpass-plugin=PerdurePass.so …        in front of vectorisation; its
//                                               step past_cache.hpp after the optimisations
//   PERDURE_PASS=ipv-check clang-19 -fpass-plugin=PerdurePass.so …  before all others, or after ipv
//   opt-19 -load-pass-plugin=PerdurePass.so -passes=perdure-trace …
//
// PERDURE_PASS lists the passes, separated by commas, in any order; default: `trace`. `ipv-all`
// is `ipv` for modules that are not marked, too; PERDURE_IPV_EXPLAIN=FILE has it explain what it
// did. These are environment variables because options of plug-ins are not known yet when Clang and
// lld read theirs.
#include <llvm/ADT/StringExtras.h>
#include <llvm/ADT/StringSet.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Passes/PassPlugin.h>
#include <llvm/Support/ErrorHandling.h>
#include <llvm/Support/Process.h>

#include <array>

#include "ipv.hpp"
#include "ipv_check.hpp"
#include "past_cache.hpp"
#include "trace.hpp"

namespace {

constexpr std::array<llvm::StringLiteral, 4> known_passes = {"trace", "ipv", "ipv-all",
                                                             "ipv-check"};

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

perdure::IpvPass ipv_pass(const llvm::StringSet<>& wanted) {
  perdure::IpvOptions options;
  options.all = wanted.contains("ipv-all");
  options.explain = llvm::sys::Process::GetEnv("PERDURE_IPV_EXPLAIN").value_or("");
  return perdure::IpvPass(options);
}

bool add_pass(llvm::StringRef name, const llvm::StringSet<>& wanted,
              llvm::ModulePassManager& passes) {
  if (name == "perdure-trace") {
    passes.addPass(perdure::TracePass());
  } else if (name == "perdure-ipv") {
    passes.addPass(ipv_pass(wanted));
  } else if (name == "perdure-past-cache") {
    passes.addPass(perdure::PastCachePass());
  } else if (name == "perdure-ipv-check") {
    passes.addPass(perdure::IpvCheckPass());
  } else {
    return false;
  }
  return true;
}

void register_passes(llvm::PassBuilder& builder) {
  const llvm::StringSet<> wanted = wanted_passes();
  builder.registerPipelineParsingCallback(
      [wanted](llvm::StringRef name, llvm::ModulePassManager& passes,
               llvm::ArrayRef<llvm::PassBuilder::PipelineElement>) {
        return add_pass(name, wanted, passes);
      });
  const bool transforms = wanted.contains("ipv") || wanted.contains("ipv-all");
  const bool checks = wanted.contains("ipv-check");
  if (checks && !transforms) {
    builder.registerPipelineEarlySimplificationEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
          passes.addPass(perdure::IpvCheckPass());
        });
  }
  if (transforms) {
    builder.registerOptimizerEarlyEPCallback(
        [wanted, checks](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
          passes.addPass(ipv_pass(wanted));
          if (checks) passes.addPass(perdure::IpvCheckPass());
        });
    builder.registerOptimizerLastEPCallback(
        [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
          passes.addPass(perdure::PastCachePass());
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
