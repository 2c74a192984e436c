// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_version.hpp"

#include "ipv_past_cache.hpp"

#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/Transforms/Utils/LoopUtils.h>

namespace perdure::ipv {

using llvm::Instruction;
using llvm::IRBuilder;
using llvm::Loop;
using llvm::Value;

namespace {

constexpr size_t past_cache_rows_max = 3;
constexpr size_t past_cache_instructions_max = 60;

class Versioner {
 public:
  Versioner(Analyses& analyses, Loop* loop, const std::vector<VersionedRow>& rows)
      : analyses_(analyses), loop_(loop), rows_(rows) {}

  Value* run() {
    llvm::BasicBlock* before = loop_->getLoopPreheader();
    llvm::BasicBlock* own = split_before_end(before);
    llvm::BasicBlock* through_cache = split_before_end(before);
    {
      llvm::ValueToValueMapTy map;
      Loop* copy = copy_loop(through_cache, map);
      IRBuilder<> builder(through_cache->getTerminator());
      builder.SetCurrentDebugLocation(through_cache->getTerminator()->getStableDebugLoc());
      Value* any = builder.getInt64(0);
      for (const VersionedRow& row : rows_) any = builder.CreateOr(any, row.load_difference);
      builder.CreateCondBr(builder.CreateIsNotNull(any), copy->getLoopPreheader(), own);
      through_cache->getTerminator()->eraseFromParent();
    }
    Value* taken = may_pass_cache() ? past_cache(before) : nullptr;
    analyses_.dominators.changeImmediateDominator(loop_->getExitBlock(), before);
    return taken;
  }

 private:
  llvm::BasicBlock* split_before_end(llvm::BasicBlock* block) {
    return llvm::SplitBlock(block, block->getTerminator(), &analyses_.dominators, &analyses_.loops);
  }

  // `dominator` will branch to its preheader.
  Loop* copy_loop(llvm::BasicBlock* dominator, llvm::ValueToValueMapTy& map) {
    llvm::BasicBlock* exiting = loop_->getExitingBlock();
    llvm::SmallVector<llvm::BasicBlock*, 8> blocks;
    Loop* copy =
        llvm::cloneLoopWithPreheader(loop_->getLoopPreheader(), dominator, loop_, map, ".ipv",
                                     &analyses_.loops, &analyses_.dominators, blocks);
    llvm::remapInstructionsInBlocks(blocks, map);
    for (llvm::PHINode& phi : loop_->getExitBlock()->phis()) {
      Value* value = phi.getIncomingValueForBlock(exiting);
      const auto mapped = map.find(value);
      phi.addIncoming(mapped == map.end() ? value : static_cast<Value*>(mapped->second),
                      llvm::cast<llvm::BasicBlock>(static_cast<Value*>(map[exiting])));
    }
    for (const VersionedRow& row : rows_) {
      for (const Access& access : row.row->loads_before) {
        auto* moved = llvm::cast<Instruction>(static_cast<Value*>(map[access.at]));
        shift(moved, access.operand, row.load_difference);
        moved->setMetadata(llvm::LLVMContext::MD_invariant_load, nullptr);
      }
    }
    return copy;
  }

  static void shift(Instruction* access, unsigned operand, Value* difference) {
    IRBuilder<> builder(access);
    access->setOperand(operand, builder.CreatePtrAdd(access->getOperand(operand), difference));
  }

  // Not where an iteration reads what it has stored: it would have to come from memory. Nor where
  // it computes so much, or stores to so many rows, which would all have to want it, that the third
  // version would cost the compiler more than it can win.
  bool may_pass_cache() const {
    const llvm::Module& module = *analyses_.function.getParent();
    const llvm::DataLayout& layout = module.getDataLayout();
    if (!PastCacheMarks::possible(module)) return false;
    if (rows_.size() > past_cache_rows_max) return false;
    size_t instructions = 0;
    for (const llvm::BasicBlock* block : loop_->blocks()) instructions += block->size();
    if (instructions > past_cache_instructions_max) return false;
    return llvm::all_of(rows_, [&](const VersionedRow& row) {
      return row.first != nullptr && row.row->loads_behind.empty() &&
             llvm::all_of(row.row->stores, [&](const Access& store) {
               const auto* plain = llvm::dyn_cast<llvm::StoreInst>(store.at);
               return plain != nullptr && plain->isSimple() &&
                      can_pass_cache(plain->getValueOperand()->getType(), layout);
             });
    });
  }

  Value* past_cache(llvm::BasicBlock* before) {
    llvm::ValueToValueMapTy map;
    PastCacheLoop copy(analyses_, *copy_loop(before, map));
    std::vector<PastCacheRow> wanted;
    for (const VersionedRow& row : rows_) {
      PastCacheRow& one = wanted.emplace_back();
      one.first = row.first;
      one.wanted = row.past_cache;
      one.step = row.row->step;
      for (const Access& access : row.row->stores) {
        one.stores.push_back(llvm::cast<llvm::StoreInst>(static_cast<Value*>(map[access.at])));
      }
    }
    return copy.run(before, wanted);
  }

  Analyses& analyses_;
  Loop* loop_;
  const std::vector<VersionedRow>& rows_;
};

}  // namespace

Value* version_loop(Analyses& analyses, Loop* loop, const std::vector<VersionedRow>& rows) {
  return Versioner(analyses, loop, rows).run();
}

}  // namespace perdure::ipv
