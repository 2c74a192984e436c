// SPDX-License-Identifier: BSD-3-Clause
//
// The pass `ipv`: makes nests of loops that overwrite a box of an array say so to the runtime of
// in-place versioning (perdure_ipv_abi.h), which then copies nothing of it.
//
// Invariants
//   - What it inserts fulfils abi.R1 to abi.R5 of perdure_ipv_abi.h in every execution; what can't
//     be shown (docs/ipv_compiler.md: S1, S2, pass.B1, pass.B2) is tested when the program runs,
//     or left alone.
//   - Only modules that are marked change: they refer to a function perdure_ipv_…, or something in
//     them has the attribute annotate("perdure_ipv"), or the configuration says all.
//
// It runs after inlining and simplification, and before vectorisation: accessors are gone by
// then, and the vectoriser sees the loops with their differences.
#pragma once

#include <llvm/IR/PassManager.h>

#include <string>

namespace perdure {

struct IpvOptions {
  bool all = false;     // modules that are not marked, too
  std::string explain;  // a file to which JSON lines are added; none if empty
};

class IpvPass : public llvm::PassInfoMixin<IpvPass> {
 public:
  explicit IpvPass(IpvOptions options) : options_(std::move(options)) {}
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }

 private:
  IpvOptions options_;
};

}  // namespace perdure
