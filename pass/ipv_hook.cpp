// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_hook.hpp"

#include "ipv_version.hpp"
#include "perdure/perdure_ipv_abi.h"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/DomTreeUpdater.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopUtils.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

namespace perdure::ipv {

using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Loop;
using llvm::Value;

namespace {

// In front of `where`, with its place in the source.
class HookBuilder : public IRBuilder<> {
 public:
  explicit HookBuilder(Instruction* where) : IRBuilder<>(where) {
    SetCurrentDebugLocation(where->getStableDebugLoc());
  }
};

// A box as values in front of its nest, and what becomes of it.
struct BoxValues {
  struct Pair {
    Value* one;
    Value* other;
  };
  Value* first = nullptr;              // pointer
  std::vector<Pair> dimensions;        // count and stride
  std::vector<Pair> others;            // low and high
  Value* wanted = nullptr;             // 1 bit: whether the conditions hold
  llvm::AllocaInst* memory = nullptr;  // struct perdure_ipv_box
  llvm::AllocaInst* ranges = nullptr;  // of others; null: there are none
  Value* load = nullptr;               // the answer
  Value* how = nullptr;
  llvm::CallInst* end = nullptr;
};

class Emitter {
 public:
  Emitter(Analyses& analyses, const std::vector<Box>& boxes)
      : analyses_(analyses),
        module_(*analyses.function.getParent()),
        boxes_(boxes),
        values_(boxes.size()),
        word_(llvm::Type::getInt64Ty(module_.getContext())),
        pointer_(llvm::PointerType::getUnqual(module_.getContext())),
        expander_(analyses.evolution, module_.getDataLayout(), "ipv"),
        updater_(analyses.dominators, llvm::DomTreeUpdater::UpdateStrategy::Eager) {
    llvm::Type* four = llvm::ArrayType::get(word_, Box::dimensions_max);
    type_ = llvm::StructType::get(pointer_, word_, four, four, pointer_, word_);
  }

  void run() {
    for (size_t i = 0; i < boxes_.size(); ++i) expand(boxes_[i], values_[i]);
    for (size_t i = 0; i < boxes_.size(); ++i) emit_begin(boxes_[i].place(), values_[i]);
    for (size_t i = 0; i < boxes_.size(); ++i) emit_end(boxes_[i], values_[i]);
    analyses_.evolution.forgetBlockAndLoopDispositions();
    for (Loop* loop : analyses_.loops) {
      llvm::formLCSSARecursively(*loop, analyses_.dominators, &analyses_.loops, nullptr);
    }
    llvm::MapVector<Loop*, std::vector<size_t>> by_loop;
    for (size_t i = 0; i < boxes_.size(); ++i) {
      if (boxes_[i].site->loop != nullptr) by_loop[boxes_[i].site->loop].push_back(i);
    }
    for (const auto& [loop, of_loop] : by_loop) version(loop, of_loop);
  }

 private:
  // With nothing of it undefined: the runtime looks at all of it.
  Value* expand(const llvm::SCEV* expression, Instruction* where, llvm::Type* type) {
    Value* value = expander_.expandCodeFor(expression, expression->getType(), where);
    IRBuilder<> builder(where);
    if (type == word_ && value->getType()->isPointerTy()) {
      value = builder.CreatePtrToInt(value, word_);
    }
    return builder.CreateFreeze(value);
  }

  Value* expand(const std::vector<Condition>& conditions, Instruction* where) {
    Value* all = llvm::ConstantInt::getTrue(where->getContext());
    for (const Condition& condition : conditions) {
      Value* value = condition.value;
      if (value == nullptr) {
        Value* left = expand(condition.left, where, condition.left->getType());
        Value* right = expand(condition.right, where, condition.right->getType());
        value = IRBuilder<>(where).CreateICmp(condition.predicate, left, right);
      }
      IRBuilder<> builder(where);
      value = builder.CreateFreeze(value);
      all = builder.CreateAnd(all, condition.wanted ? value : builder.CreateNot(value));
    }
    return all;
  }

  void expand(const Box& box, BoxValues& values) {
    Instruction* where = box.place();
    values.first = expand(box.first, where, pointer_);
    for (const Box::Dimension& one : box.dimensions) {
      Value* count = expand(one.count, where, word_);
      values.dimensions.push_back({count, expand(one.stride, where, word_)});
    }
    for (const Range& range : box.others) {
      Value* low = expand(range.low, where, word_);
      values.others.push_back({low, expand(range.high, where, word_)});
    }
    values.wanted = expand(box.conditions, where);
    IRBuilder<> builder(&*analyses_.function.getEntryBlock().getFirstInsertionPt());
    values.memory = builder.CreateAlloca(type_, nullptr, "ipv.box");
    if (values.others.empty()) return;
    llvm::Type* ranges = llvm::ArrayType::get(word_, 2 * values.others.size());
    values.ranges = builder.CreateAlloca(ranges, nullptr, "ipv.others");
  }

  Value* variable(IRBuilder<>& builder, const char* name) {
    return builder.CreateLoad(word_, module_.getOrInsertGlobal(name, word_));
  }

  // Whether the runtime is asked: the box may lie in an object, and is large enough.
  Value* is_candidate(IRBuilder<>& builder, const BoxValues& values) {
    Value* bytes = builder.getInt64(1);
    for (const BoxValues::Pair& one : values.dimensions) bytes = builder.CreateMul(bytes, one.one);
    Value* low = variable(builder, "perdure_ipv_low");
    Value* place = builder.CreateSub(builder.CreatePtrToInt(values.first, word_), low);
    Value* size = builder.CreateSub(variable(builder, "perdure_ipv_high"), low);
    Value* large = builder.CreateICmpUGE(bytes, variable(builder, "perdure_ipv_box_bytes_min"));
    Value* near = builder.CreateICmpULT(place, size);
    return builder.CreateAnd(builder.CreateAnd(values.wanted, near), large);
  }

  void describe(IRBuilder<>& builder, const BoxValues& values) {
    const auto store = [&](Value* value, unsigned field, unsigned place) {
      Value* at = values.memory;
      at = field == 2 || field == 3
               ? builder.CreateInBoundsGEP(
                     type_, at,
                     {builder.getInt32(0), builder.getInt32(field), builder.getInt32(place)})
               : builder.CreateStructGEP(type_, at, field);
      builder.CreateStore(value, at);
    };
    store(values.first, 0, 0);
    store(builder.getInt64(values.dimensions.size()), 1, 0);
    for (unsigned d = 0; d < values.dimensions.size(); ++d) {
      store(values.dimensions[d].one, 2, d);
      store(values.dimensions[d].other, 3, d);
    }
    for (unsigned i = 0; i < values.others.size(); ++i) {
      builder.CreateStore(values.others[i].one,
                          builder.CreateConstInBoundsGEP1_64(word_, values.ranges, 2 * i));
      builder.CreateStore(values.others[i].other,
                          builder.CreateConstInBoundsGEP1_64(word_, values.ranges, 2 * i + 1));
    }
    Value* none = llvm::ConstantPointerNull::get(pointer_);
    store(values.ranges == nullptr ? none : values.ranges, 4, 0);
    store(builder.getInt64(values.others.size()), 5, 0);
  }

  Instruction* split(Value* condition, Instruction* where) {
    llvm::MDNode* seldom = llvm::MDBuilder(module_.getContext()).createUnlikelyBranchWeights();
    return llvm::SplitBlockAndInsertIfThen(condition, where->getIterator(), false, seldom,
                                           &updater_, &analyses_.loops);
  }

  void emit_begin(Instruction* where, BoxValues& values) {
    HookBuilder before(where);
    llvm::BasicBlock* head = where->getParent();
    HookBuilder builder(split(is_candidate(before, values), where));
    builder.SetCurrentDebugLocation(where->getStableDebugLoc());
    describe(builder, values);
    auto* answer_type = llvm::StructType::get(word_, word_);
    const auto begin = module_.getOrInsertFunction(
        "perdure_ipv_box_begin", llvm::FunctionType::get(answer_type, {pointer_}, false));
    auto* answer = builder.CreateCall(begin, {values.memory});
    answer->setDoesNotThrow();
    Value* load = builder.CreateExtractValue(answer, 0);
    Value* how = builder.CreateExtractValue(answer, 1);
    llvm::BasicBlock* tail = where->getParent();
    const auto either = [&](Value* value, const char* name) {
      IRBuilder<> phis(tail, tail->begin());
      llvm::PHINode* phi = phis.CreatePHI(word_, 2, name);
      phi->addIncoming(builder.getInt64(0), head);
      phi->addIncoming(value, builder.GetInsertBlock());
      return phi;
    };
    values.load = either(load, "ipv.load");
    values.how = either(how, "ipv.how");
  }

  void emit_end(const Box& box, BoxValues& values) {
    Instruction* where = box.nest == nullptr ? box.site->intrinsic->getNextNode()
                                             : &*box.nest->getExitBlock()->getFirstInsertionPt();
    HookBuilder before(where);
    HookBuilder builder(split(before.CreateIsNotNull(values.how), where));
    builder.SetCurrentDebugLocation(box.place()->getStableDebugLoc());
    const auto end = module_.getOrInsertFunction(
        "perdure_ipv_box_end",
        llvm::FunctionType::get(builder.getVoidTy(), {pointer_, builder.getInt32Ty()}, false));
    values.end = builder.CreateCall(end, {values.memory, builder.getInt32(0)});
    values.end->setDoesNotThrow();
  }

  void version(Loop* loop, const std::vector<size_t>& of_loop) {
    std::vector<VersionedRow> rows;
    for (const size_t i : of_loop) {
      IRBuilder<> builder(boxes_[i].place());
      rows.push_back(
          {boxes_[i].row, boxes_[i].place(), values_[i].load,
           builder.CreateICmpEQ(values_[i].how, builder.getInt64(PERDURE_IPV_BOX_PAST_CACHE))});
    }
    const std::vector<Value*> past_cache = version_loop(analyses_, loop, rows);
    for (size_t i = 0; i < of_loop.size(); ++i) {
      if (past_cache[i] == nullptr) continue;
      llvm::CallInst* end = values_[of_loop[i]].end;
      IRBuilder<> builder(end);
      end->setArgOperand(1, builder.CreateZExt(past_cache[i], builder.getInt32Ty()));
    }
  }

  Analyses& analyses_;
  llvm::Module& module_;
  const std::vector<Box>& boxes_;
  std::vector<BoxValues> values_;
  llvm::Type* word_;
  llvm::PointerType* pointer_;
  llvm::StructType* type_;
  llvm::SCEVExpander expander_;
  llvm::DomTreeUpdater updater_;
};

}  // namespace

void emit_hooks(Analyses& analyses, const std::vector<Box>& boxes) {
  Emitter(analyses, boxes).run();
}

}  // namespace perdure::ipv
