// Emits the code of single accesses into one function; trace.cpp finds the accesses.
#pragma once

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

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

class AccessEmitter {
 public:
  // Loads this thread's cache at the entry of `function`.
  AccessEmitter(llvm::Function& function, const TraceSymbols& symbols);

  // `bytes` bytes at `address`, in front of `where`. `aligned`: they are known to be in one line.
  void access(llvm::Instruction* where, llvm::Value* address, uint64_t bytes, bool aligned,
              bool is_write);
  // A number of bytes that is known when the program runs.
  void range(llvm::Instruction* where, llvm::Value* address, llvm::Value* bytes, bool is_write);
  void copy(llvm::Instruction* where, llvm::Value* to, llvm::Value* from, llvm::Value* bytes);
  // Elements of `element_bytes` one behind the other; `mask` is a vector of i1.
  void lanes(llvm::Instruction* where, llvm::Value* address, uint64_t element_bytes,
             llvm::Value* mask, bool is_write);

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
