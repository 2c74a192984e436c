// SPDX-License-Identifier: BSD-3-Clause
//
// Emits the code of single accesses into one function; accesses.hpp finds the accesses.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include "accesses.hpp"

namespace perdure {

// What instrumented code of a module refers to.
struct TraceSymbols {
  explicit TraceSymbols(llvm::Module& module);
  llvm::GlobalVariable* cache;  // thread-local
  llvm::StructType* cache_type;
  llvm::FunctionCallee thread_start;
  llvm::FunctionCallee access[2];  // read, write
  llvm::FunctionCallee miss[2];    // the same in one line
  llvm::FunctionCallee lanes[2];   // read, write
  llvm::FunctionCallee copy;
  bool preserves_most;  // what `access` and `miss` are called with
};

class AccessEmitter : public AccessSink {
 public:
  // Loads this thread's cache at the entry of `function`.
  AccessEmitter(llvm::Function& function, const TraceSymbols& symbols);

  void access(llvm::Instruction* where, llvm::Value* address, uint64_t bytes, bool aligned,
              bool is_write) override;
  void range(llvm::Instruction* where, llvm::Value* address, llvm::Value* bytes,
             bool is_write) override;
  void copy(llvm::Instruction* where, llvm::Value* to, llvm::Value* from,
            llvm::Value* bytes) override;
  void lanes(llvm::Instruction* where, llvm::Value* address, uint64_t element_bytes,
             llvm::Value* bits, bool is_write) override;

 private:
  void call_access(llvm::IRBuilder<>& builder, llvm::Value* address, llvm::Value* bytes,
                   bool is_write);
  void call_miss(llvm::IRBuilder<>& builder, llvm::Value* entry, llvm::Value* address,
                 bool is_write);
  llvm::Value* number(llvm::IRBuilder<>& builder, llvm::Value* address);

  const TraceSymbols& symbols_;
  llvm::MDNode* unlikely_;
  llvm::Value* entries_[2];  // read, write
  llvm::Value* byte_mask_;
  llvm::Value* slack_;
};

}  // namespace perdure
