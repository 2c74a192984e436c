// SPDX-License-Identifier: BSD-3-Clause
//
// The walk over all accesses to memory of a function, which the passes share that instrument them:
// loads, stores, atomic operations, vectors, masked, gathered, scattered, expanding and compressing
// ones, memcpy, memmove, memset and the library's functions of these names. A sink emits the code.
//
// Functions with the attribute `disable_sanitizer_instrumentation`, naked ones, and those whose
// names begin with a prefix of the caller's, are left alone. Target intrinsics that access memory
// in ways that are not known here are named in a warning, never left out silently.
#pragma once

#include <llvm/Analysis/TargetLibraryInfo.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <string>
#include <vector>

namespace perdure {

// Emits code in front of `where`. Addresses are pointers of address space 0, or 64-bit integers.
class AccessSink {
 public:
  virtual ~AccessSink() = default;
  // `bytes` bytes. `aligned`: to their own number.
  virtual void access(llvm::Instruction* where, llvm::Value* address, uint64_t bytes, bool aligned,
                      bool is_write) = 0;
  // A number of bytes that is known when the program runs.
  virtual void range(llvm::Instruction* where, llvm::Value* address, llvm::Value* bytes,
                     bool is_write) = 0;
  virtual void copy(llvm::Instruction* where, llvm::Value* to, llvm::Value* from,
                    llvm::Value* bytes) = 0;
  // Consecutive elements of `element_bytes`: bit i of `bits` (64 of them) is element i.
  virtual void lanes(llvm::Instruction* where, llvm::Value* address, uint64_t element_bytes,
                     llvm::Value* bits, bool is_write) = 0;
};

bool is_left_alone(const llvm::Function& function, llvm::StringRef prefix);

// The instructions that may access memory. Those that instrumentation adds are not among them, nor
// stores that PastCachePass made: the runtime hears of them row by row.
std::vector<llvm::Instruction*> instructions_that_access(llvm::Function& function);

// `recorder` is named in warnings.
void visit_accesses(llvm::Function& function, const std::vector<llvm::Instruction*>& instructions,
                    const llvm::TargetLibraryInfo& library, const std::string& recorder,
                    AccessSink& sink);

// What a function, and the calls in it, promised of memory is no longer so once it is instrumented.
void forget_promises(llvm::Function& function);

}  // namespace perdure
