// SPDX-License-Identifier: BSD-3-Clause
//
// The pass `ipv-check`: makes a program announce its loads and stores, with their places in the
// source, to the checker of in-place versioning (perdure_ipv_check_abi.h).
//
// It runs at the early end of the pipeline, before anything is inlined, vectorised or removed, so
// that places are exact, and after the pass that inserts the hooks of in-place versioning, so that
// it sees what they redirect. Local variables whose address nobody else has are left out: they can
// be no object's. Calls of perdure_ipv_* and perdure_flush_async are given their places too, and
// the module tells its variables of static storage.
#pragma once

#include <llvm/IR/PassManager.h>

namespace perdure {

class IpvCheckPass : public llvm::PassInfoMixin<IpvCheckPass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }  // at -O0 too
};

}  // namespace perdure
