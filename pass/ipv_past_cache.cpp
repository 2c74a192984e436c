// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_past_cache.hpp"

#include <llvm/ADT/SmallPtrSet.h>
#include <llvm/Analysis/AssumptionCache.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/Transforms/Utils/BasicBlockUtils.h>
#include <llvm/Transforms/Utils/LoopPeel.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

namespace perdure::ipv {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::IRBuilder;
using llvm::PHINode;
using llvm::Value;

namespace {

constexpr uint64_t aligned_bytes = 16;
constexpr int64_t peeled_step = 8;

Value* rest_of(IRBuilder<>& builder, Value* pointer) {
  return builder.CreateAnd(builder.CreatePtrToInt(pointer, builder.getInt64Ty()),
                           aligned_bytes - 1);
}

}  // namespace

void PastCacheLoop::put_into_scopes(const std::vector<PastCacheRow>& rows) {
  llvm::SmallPtrSet<const Instruction*, 8> stores;
  for (const PastCacheRow& row : rows) stores.insert(row.stores.begin(), row.stores.end());
  for (BasicBlock* block : copy_.blocks()) {
    for (Instruction& instruction : *block) {
      if (!instruction.mayWriteToMemory()) continue;
      PastCacheMarks::put_into(
          instruction, stores.contains(&instruction) ? PastCacheScope::row : PastCacheScope::other);
    }
  }
}

// One that only the copy comes to, on its way to the exit.
BasicBlock* PastCacheLoop::leave_by_a_block() {
  BasicBlock* exiting = copy_.getExitingBlock();
  BasicBlock* exit = copy_.getExitBlock();
  BasicBlock* own =
      BasicBlock::Create(exit->getContext(), "past_cache.end", exit->getParent(), exit);
  llvm::BranchInst::Create(exit, own);
  for (PHINode& phi : exit->phis()) {
    const int place = phi.getBasicBlockIndex(exiting);
    PHINode* here = PHINode::Create(phi.getType(), 2, phi.getName(), own->begin());
    here->addIncoming(phi.getIncomingValue(static_cast<unsigned>(place)), exiting);
    phi.setIncomingValue(static_cast<unsigned>(place), here);
    phi.setIncomingBlock(static_cast<unsigned>(place), own);
  }
  exiting->getTerminator()->replaceSuccessorWith(exit, own);
  analyses_.dominators.addNewBlock(own, exiting);
  if (llvm::Loop* around = copy_.getParentLoop()) {
    around->addBasicBlockToLoop(own, analyses_.loops);
  }
  return own;
}

Value* PastCacheLoop::may_run(Instruction* where, PastCacheSite site,
                              const std::vector<PastCacheRow>& rows, bool peel) {
  IRBuilder<> builder(where);
  Value* may = marks_.is_trusted(where, site);
  Value* first = rest_of(builder, rows.front().first);
  if (peel) {
    may = builder.CreateAnd(may, builder.CreateIsNull(builder.CreateAnd(first, peeled_step - 1)));
  }
  for (const PastCacheRow& row : rows) {
    may = builder.CreateAnd(may, builder.CreateIsNotNull(row.wanted));
    Value* rest = rest_of(builder, row.first);
    may = builder.CreateAnd(may,
                            peel ? builder.CreateICmpEQ(rest, first) : builder.CreateIsNull(rest));
  }
  return builder.CreateFreeze(may);
}

// The first iteration comes in front of the loop, and only where the row does not begin at 16
// bytes.
void PastCacheLoop::peel_to_alignment(Value* first) {
  BasicBlock* before = copy_.getLoopPreheader();
  llvm::SmallVector<std::pair<PHINode*, Value*>, 8> initial;
  for (PHINode& phi : copy_.getHeader()->phis()) {
    initial.emplace_back(&phi, phi.getIncomingValueForBlock(before));
  }
  llvm::AssumptionCache assumptions(analyses_.function);
  llvm::ValueToValueMapTy unused;
  llvm::peelLoop(&copy_, 1, &analyses_.loops, &analyses_.evolution, analyses_.dominators,
                 &assumptions, true, unused);
  BasicBlock* after = copy_.getLoopPreheader();
  BasicBlock* peeled = after->getSinglePredecessor();
  BasicBlock* begin = before->getSingleSuccessor();
  for (const auto& [phi, value] : initial) {
    PHINode* either = PHINode::Create(phi->getType(), 2, phi->getName(), after->begin());
    either->addIncoming(phi->getIncomingValueForBlock(after), peeled);
    either->addIncoming(value, before);
    phi->setIncomingValueForBlock(after, either);
  }
  IRBuilder<> builder(before->getTerminator());
  builder.CreateCondBr(builder.CreateIsNull(rest_of(builder, first)), after, begin);
  before->getTerminator()->eraseFromParent();
  analyses_.dominators.changeImmediateDominator(after, before);
  analyses_.evolution.forgetLoop(&copy_);
}

// Where each ascending row begins in the copy.
std::vector<Value*> PastCacheLoop::aligned_pointers(const std::vector<PastCacheRow>& rows) {
  Instruction* where = copy_.getLoopPreheader()->getTerminator();
  llvm::SCEVExpander expander(analyses_.evolution, where->getDataLayout(), "past_cache");
  std::vector<Value*> pointers;
  for (const PastCacheRow& row : rows) {
    if (row.step <= 0) continue;
    const auto* address = llvm::dyn_cast<llvm::SCEVAddRecExpr>(
        analyses_.evolution.getSCEV(row.stores.front()->getPointerOperand()));
    if (address == nullptr || address->getLoop() != &copy_) continue;
    if (!expander.isSafeToExpandAt(address->getStart(), where)) continue;
    pointers.push_back(
        expander.expandCodeFor(address->getStart(), address->getStart()->getType(), where));
  }
  return pointers;
}

Value* PastCacheLoop::run(BasicBlock* before, const std::vector<PastCacheRow>& rows) {
  const bool peel =
      llvm::all_of(rows, [](const PastCacheRow& row) { return row.step == peeled_step; });
  put_into_scopes(rows);
  BasicBlock* end = leave_by_a_block();
  BasicBlock* exit = end->getSingleSuccessor();
  Instruction* branch = before->getTerminator();
  const PastCacheSite site = marks_.new_site();
  Value* may = may_run(branch, site, rows, peel);
  IRBuilder<>(branch).CreateCondBr(may, copy_.getLoopPreheader(), branch->getSuccessor(0));
  branch->eraseFromParent();
  if (peel) peel_to_alignment(rows.front().first);
  marks_.begin(copy_.getLoopPreheader()->getTerminator(), site, aligned_pointers(rows));
  marks_.end(end->getTerminator());
  IRBuilder<> builder(exit, exit->begin());
  PHINode* taken = builder.CreatePHI(builder.getInt1Ty(), 3, "past_cache");
  for (BasicBlock* from : llvm::predecessors(exit)) {
    taken->addIncoming(builder.getInt1(from == end), from);
  }
  return taken;
}

}  // namespace perdure::ipv
