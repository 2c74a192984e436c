// SPDX-License-Identifier: BSD-3-Clause
#include "trace_access.hpp"

#include <llvm/IR/MDBuilder.h>
#include <llvm/TargetParser/Triple.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>

#include "perdure/perdure_trace_abi.h"

namespace perdure {

using llvm::ConstantInt;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Value;

namespace {

enum CacheField : unsigned { reads_field, writes_field, byte_mask_field, slack_field };
constexpr unsigned entry_shift = 3;  // an entry has 8 bytes

}  // namespace

TraceSymbols::TraceSymbols(llvm::Module& module) {
  llvm::LLVMContext& context = module.getContext();
  llvm::Type* word = llvm::Type::getInt64Ty(context);
  llvm::Type* pointer = llvm::PointerType::getUnqual(context);
  llvm::Type* nothing = llvm::Type::getVoidTy(context);
  cache_type = llvm::StructType::get(pointer, pointer, word, word);
  cache = module.getNamedGlobal("perdure_trace_ways");
  if (cache == nullptr) {
    cache = new llvm::GlobalVariable(module, cache_type, false, llvm::GlobalValue::ExternalLinkage,
                                     nullptr, "perdure_trace_ways", nullptr,
                                     llvm::GlobalValue::InitialExecTLSModel);
  }
  thread_start = module.getOrInsertFunction("perdure_trace_thread_start", nothing);
  access[0] = module.getOrInsertFunction("perdure_trace_read", nothing, word, word);
  access[1] = module.getOrInsertFunction("perdure_trace_write", nothing, word, word);
  miss[0] = module.getOrInsertFunction("perdure_trace_read_miss", nothing, pointer, word);
  miss[1] = module.getOrInsertFunction("perdure_trace_write_miss", nothing, pointer, word);
  lanes[0] = module.getOrInsertFunction("perdure_trace_read_lanes", nothing, word, word, word);
  lanes[1] = module.getOrInsertFunction("perdure_trace_write_lanes", nothing, word, word, word);
  copy = module.getOrInsertFunction("perdure_trace_copy", nothing, word, word, word);
  preserves_most = llvm::Triple(module.getTargetTriple()).getArch() == llvm::Triple::x86_64;
  for (llvm::FunctionCallee callee : {access[0], access[1], miss[0], miss[1]}) {
    auto* function = llvm::dyn_cast<llvm::Function>(callee.getCallee());
    if (function == nullptr) continue;
    function->setDoesNotThrow();
    // Bound before its first call: the dynamic linker, which binds late, preserves fewer registers.
    function->addFnAttr(llvm::Attribute::NonLazyBind);
    if (preserves_most) function->setCallingConv(llvm::CallingConv::PreserveMost);
  }
}

AccessEmitter::AccessEmitter(llvm::Function& function, const TraceSymbols& symbols)
    : symbols_(symbols),
      unlikely_(llvm::MDBuilder(function.getContext()).createUnlikelyBranchWeights()) {
  // Allocas stay together at the head, or they would become dynamic ones.
  IRBuilder<> builder(&*function.getEntryBlock().getFirstNonPHIOrDbgOrAlloca());
  builder.SetCurrentDebugLocation({});
  Value* cache = builder.CreateThreadLocalAddress(symbols.cache);
  const auto field = [&](IRBuilder<>& at, unsigned number) -> Value* {
    return at.CreateLoad(symbols_.cache_type->getElementType(number),
                         at.CreateStructGEP(symbols_.cache_type, cache, number));
  };
  Value* begun = builder.CreateIsNull(field(builder, reads_field));
  Instruction* where = &*builder.GetInsertPoint();
  Instruction* start = llvm::SplitBlockAndInsertIfThen(begun, where, false, unlikely_);
  IRBuilder<>(start).CreateCall(symbols.thread_start);
  builder.SetInsertPoint(where);
  entries_[0] = field(builder, reads_field);
  entries_[1] = field(builder, writes_field);
  byte_mask_ = field(builder, byte_mask_field);
  slack_ = field(builder, slack_field);
}

Value* AccessEmitter::number(IRBuilder<>& builder, Value* address) {
  return address->getType()->isPointerTy() ? builder.CreatePtrToInt(address, builder.getInt64Ty())
                                           : address;
}

void AccessEmitter::call_access(IRBuilder<>& builder, Value* address, Value* bytes, bool is_write) {
  llvm::CallInst* call = builder.CreateCall(symbols_.access[is_write ? 1 : 0], {address, bytes});
  if (symbols_.preserves_most) call->setCallingConv(llvm::CallingConv::PreserveMost);
}

void AccessEmitter::call_miss(IRBuilder<>& builder, Value* entry, Value* address, bool is_write) {
  llvm::CallInst* call = builder.CreateCall(symbols_.miss[is_write ? 1 : 0], {entry, address});
  if (symbols_.preserves_most) call->setCallingConv(llvm::CallingConv::PreserveMost);
}

void AccessEmitter::access(Instruction* where, Value* pointer, uint64_t bytes, bool aligned,
                           bool is_write) {
  IRBuilder<> builder(where);
  llvm::Type* word = builder.getInt64Ty();
  Value* address = number(builder, pointer);
  if (bytes > (uint64_t{1} << PERDURE_TRACE_LINE_SHIFT)) {
    call_access(builder, address, builder.getInt64(bytes), is_write);
    return;
  }
  Value* offset = builder.CreateAnd(
      builder.CreateLShr(address, PERDURE_TRACE_LINE_SHIFT - entry_shift), byte_mask_);
  Value* entry = builder.CreateGEP(builder.getInt8Ty(), entries_[is_write ? 1 : 0], offset);
  Value* difference = builder.CreateXor(builder.CreateLoad(word, entry), address);
  Value* misses = builder.CreateICmpUGT(difference, slack_);
  if (aligned) {
    builder.SetInsertPoint(llvm::SplitBlockAndInsertIfThen(misses, where, false, unlikely_));
    call_miss(builder, entry, address, is_write);
    return;
  }
  Value* last = builder.CreateAdd(address, builder.getInt64(bytes - 1));
  Value* crossed = builder.CreateIsNotNull(
      builder.CreateLShr(builder.CreateXor(address, last), PERDURE_TRACE_LINE_SHIFT));
  misses = builder.CreateOr(misses, crossed);
  Instruction* then = llvm::SplitBlockAndInsertIfThen(misses, where, false, unlikely_);
  Instruction *in_two = nullptr, *in_one = nullptr;
  llvm::SplitBlockAndInsertIfThenElse(crossed, then, &in_two, &in_one);
  builder.SetInsertPoint(in_two);
  call_access(builder, address, builder.getInt64(bytes), is_write);
  builder.SetInsertPoint(in_one);
  call_miss(builder, entry, address, is_write);
}

void AccessEmitter::range(Instruction* where, Value* address, Value* bytes, bool is_write) {
  IRBuilder<> builder(where);
  call_access(builder, number(builder, address),
              builder.CreateZExtOrTrunc(bytes, builder.getInt64Ty()), is_write);
}

void AccessEmitter::copy(Instruction* where, Value* to, Value* from, Value* bytes) {
  IRBuilder<> builder(where);
  builder.CreateCall(symbols_.copy, {number(builder, to), number(builder, from),
                                     builder.CreateZExtOrTrunc(bytes, builder.getInt64Ty())});
}

void AccessEmitter::lanes(Instruction* where, Value* address, uint64_t element_bytes, Value* bits,
                          bool is_write) {
  IRBuilder<> builder(where);
  builder.CreateCall(symbols_.lanes[is_write ? 1 : 0],
                     {number(builder, address), builder.getInt64(element_bytes), bits});
}

}  // namespace perdure
