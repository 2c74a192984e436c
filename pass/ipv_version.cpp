// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_version.hpp"

#include "past_cache.hpp"
#include "perdure/perdure_ipv_abi.h"

#include <llvm/ADT/SmallPtrSet.h>
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
      : analyses_(analyses), loop_(loop), rows_(rows), marks_(*analyses.function.getParent()) {}

  std::vector<Value*> run() {
    std::vector<Value*> taken(rows_.size());
    const bool shifted = reads_rows();
    const bool past_cache = may_pass_cache();
    if (!shifted && !past_cache) return taken;
    const PastCacheSite site = marks_.new_site();
    Value* past = past_cache ? may_run_past_cache(site) : nullptr;  // before blocks are split
    llvm::BasicBlock* before = loop_->getLoopPreheader();
    llvm::BasicBlock* own = split_before_end(before);
    if (shifted) choose_shifted(split_before_end(before), own);
    analyses_.dominators.changeImmediateDominator(loop_->getExitBlock(), before);
    if (past_cache) choose_past_cache(before, site, past);
    for (size_t i = 0; i < rows_.size(); ++i) {
      if (goes_past_cache(rows_[i])) taken[i] = past;
    }
    return taken;
  }

 private:
  bool reads_rows() const {
    return llvm::any_of(rows_,
                        [](const VersionedRow& row) { return !row.row->loads_before.empty(); });
  }

  // The version whose loads have the differences added runs if one of them is not 0.
  void choose_shifted(llvm::BasicBlock* where, llvm::BasicBlock* own) {
    llvm::ValueToValueMapTy map;
    Loop* copy = copy_loop(where, map);
    IRBuilder<> builder(where->getTerminator());
    builder.SetCurrentDebugLocation(where->getTerminator()->getStableDebugLoc());
    Value* any = builder.getInt64(0);
    for (const VersionedRow& row : rows_) any = builder.CreateOr(any, row.load_difference);
    builder.CreateCondBr(builder.CreateIsNotNull(any), copy->getLoopPreheader(), own);
    where->getTerminator()->eraseFromParent();
  }

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
    if (is_free_of_order()) free_of_order(copy);
    // What is not vectorised is not worth the code of several iterations.
    llvm::addStringMetadataToLoop(copy, "llvm.loop.unroll.disable", 1);
    return copy;
  }

  // No iteration of a copy touches what another one stores to, if only its one row is stored
  // to: a copy runs only in a box that was announced, so no other access touches the object, and
  // the row's loads read the old copy, or what their own iteration stores to. Each byte is stored
  // to once, after all loads of it, so that the order of accesses in an iteration does not matter
  // either; and nothing is conditional, as the vectoriser may take a conditional load for one that
  // is safe. Then it needs no tests.
  bool is_free_of_order() const {
    if (rows_.size() != 1) return false;
    const Row& row = *rows_.front().row;
    if (!row.loads_behind.empty()) return false;
    uint64_t stored = 0;
    for (const Access& store : row.stores) stored += store.constant_bytes();
    if (stored != static_cast<uint64_t>(std::abs(row.step))) return false;
    for (const llvm::BasicBlock* block : loop_->blocks()) {
      for (const Instruction& instruction : *block) {
        if (!instruction.mayReadOrWriteMemory()) continue;
        if (!analyses_.dominators.dominates(block, loop_->getLoopLatch())) return false;
        const bool stores = instruction.mayWriteToMemory();
        if (stores && llvm::none_of(row.stores, [&](const Access& store) {
              return store.at == &instruction && llvm::isa<llvm::StoreInst>(instruction);
            })) {
          return false;
        }
      }
    }
    return true;
  }

  void free_of_order(Loop* copy) {
    llvm::LLVMContext& context = analyses_.function.getContext();
    llvm::MDNode* group = llvm::MDNode::getDistinct(context, {});
    for (llvm::BasicBlock* block : copy->blocks()) {
      for (Instruction& instruction : *block) {
        if (instruction.mayReadOrWriteMemory()) {
          instruction.setMetadata(llvm::LLVMContext::MD_access_group, group);
        }
      }
    }
    copy->setLoopID(llvm::makePostTransformationMetadata(
        context, copy->getLoopID(), {"llvm.loop.parallel_accesses"},
        {llvm::MDNode::get(context,
                           {llvm::MDString::get(context, "llvm.loop.parallel_accesses"), group})}));
  }

  static void shift(Instruction* access, unsigned operand, Value* difference) {
    IRBuilder<> builder(access);
    access->setOperand(operand, builder.CreatePtrAdd(access->getOperand(operand), difference));
  }

  // Where a loop updates some of its rows and only stores to the others, these may well be arrays
  // that are no objects, which nobody wants past the cache, and which are read soon.
  bool goes_past_cache(const VersionedRow& row) const {
    return !reads_rows() || !row.row->loads_before.empty();
  }

  // The runtime would never have it past the cache.
  static bool is_short(const Row& row) {
    const auto* bytes = llvm::dyn_cast<llvm::SCEVConstant>(row.bytes);
    return bytes != nullptr && bytes->getAPInt().ult(PERDURE_IPV_PAST_CACHE_BYTES_MIN);
  }

  // Not where an iteration reads what it has stored: it would have to come from memory. Nor where
  // it computes so much, or stores to so many rows, which would all have to want it, that the third
  // version would cost the compiler more than it can win.
  bool may_pass_cache() const {
    const llvm::Module& module = *analyses_.function.getParent();
    const llvm::DataLayout& layout = module.getDataLayout();
    if (!PastCacheMarks::possible(module)) return false;
    if (rows_.size() > past_cache_rows_max) return false;
    for (const VersionedRow& row : rows_) {
      if (row.place != rows_.front().place) return false;
    }
    size_t instructions = 0;
    for (const llvm::BasicBlock* block : loop_->blocks()) instructions += block->size();
    if (instructions > past_cache_instructions_max) return false;
    return llvm::all_of(rows_, [&](const VersionedRow& row) {
      if (!goes_past_cache(row)) return true;
      return !is_short(*row.row) && row.row->loads_behind.empty() &&
             llvm::all_of(row.row->stores, [&](const Access& store) {
               const auto* plain = llvm::dyn_cast<llvm::StoreInst>(store.at);
               return plain != nullptr && plain->isSimple() &&
                      can_pass_cache(plain->getValueOperand()->getType(), layout);
             });
    });
  }

  // In front of the nest: the version is trusted, and the runtime would have all its rows so.
  Value* may_run_past_cache(PastCacheSite site) {
    Instruction* place = rows_.front().place;
    Value* may = marks_.is_trusted(place, site);
    for (const VersionedRow& row : rows_) {
      if (goes_past_cache(row)) may = IRBuilder<>(place).CreateAnd(may, row.past_cache);
    }
    return may;
  }

  void choose_past_cache(llvm::BasicBlock* before, PastCacheSite site, Value* may) {
    llvm::ValueToValueMapTy map;
    Loop* copy = copy_loop(before, map);
    // Memory is what it waits for.
    llvm::addStringMetadataToLoop(copy, "llvm.loop.interleave.count", 1);
    llvm::SmallPtrSet<const Value*, 8> stores;
    for (const VersionedRow& row : rows_) {
      if (!goes_past_cache(row)) continue;
      for (const Access& access : row.row->stores) stores.insert(map[access.at]);
    }
    put_into_scopes(*copy, stores);
    Instruction* branch = before->getTerminator();
    IRBuilder<>(branch).CreateCondBr(may, copy->getLoopPreheader(), branch->getSuccessor(0));
    branch->eraseFromParent();
    llvm::BasicBlock* end = llvm::SplitCriticalEdge(
        copy->getExitingBlock(), loop_->getExitBlock(),
        llvm::CriticalEdgeSplittingOptions(&analyses_.dominators, &analyses_.loops)
            .setPreserveLCSSA());
    marks_.begin(copy->getLoopPreheader()->getTerminator(), site);
    marks_.end(end->getTerminator());
  }

  static void put_into_scopes(Loop& copy, const llvm::SmallPtrSetImpl<const Value*>& stores) {
    for (llvm::BasicBlock* block : copy.blocks()) {
      for (Instruction& instruction : *block) {
        if (!instruction.mayWriteToMemory()) continue;
        PastCacheMarks::put_into(instruction, stores.contains(&instruction)
                                                  ? PastCacheScope::row
                                                  : PastCacheScope::other);
      }
    }
  }

  Analyses& analyses_;
  Loop* loop_;
  const std::vector<VersionedRow>& rows_;
  PastCacheMarks marks_;
};

}  // namespace

std::vector<Value*> version_loop(Analyses& analyses, Loop* loop,
                                 const std::vector<VersionedRow>& rows) {
  return Versioner(analyses, loop, rows).run();
}

}  // namespace perdure::ipv
