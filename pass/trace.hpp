// SPDX-License-Identifier: BSD-3-Clause
//
// The pass `trace`: makes a program tell which memory it accesses (perdure_trace_abi.h).
//
// It runs after all optimisations, so that what is counted is what the processor will do, except
// for what the code generator adds: spilled registers, copies of arguments on the stack, constants.
// Each load, store and atomic operation gets the test for a hit inline, and a call where it fails;
// vectors of any width test their first and last byte; gathers and scatters test each lane; masked
// accesses, memcpy, memmove and memset call. Functions with the attribute
// `disable_sanitizer_instrumentation`, and naked ones, are left alone. Target intrinsics that
// access memory in ways that are not known here are named in a warning, never left out silently.
#pragma once

#include <llvm/IR/PassManager.h>

namespace perdure {

class TracePass : public llvm::PassInfoMixin<TracePass> {
 public:
  llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager& analyses);
  static bool isRequired() { return true; }  // at -O0 too
};

}  // namespace perdure
