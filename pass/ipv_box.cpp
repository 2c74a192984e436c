// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_box.hpp"

namespace perdure::ipv {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;
using llvm::Value;

namespace {

constexpr size_t others_max = 64;
constexpr int64_t merged_gap = 1024;  // ranges that are nearer are compared as one

const Instruction* store_of(const Box& box) {
  return box.row->stores.front().at;
}

// Takes the range in, perhaps as one with another that is near. False: there are too many.
bool add(llvm::ScalarEvolution& evolution, std::vector<Range>& ranges, const Range& range) {
  for (Range& other : ranges) {
    const auto low = distance(evolution, other.low, range.low);
    const auto high = distance(evolution, other.high, range.high);
    if (!low || !high || std::abs(*low) > merged_gap || std::abs(*high) > merged_gap) continue;
    if (*low < 0) other.low = range.low;
    if (*high > 0) other.high = range.high;
    return true;
  }
  if (ranges.size() == others_max) return false;
  ranges.push_back(range);
  return true;
}

}  // namespace

std::optional<Condition> BoxShaper::condition(const Box& box, const llvm::BranchInst& branch,
                                              bool wanted) {
  Value* value = branch.getCondition();
  const auto* computed = llvm::dyn_cast<Instruction>(value);
  Condition found;
  found.wanted = wanted;
  if (computed == nullptr || analyses_.dominators.dominates(computed, box.place())) {
    found.value = value;
    return found;
  }
  const auto* compared = llvm::dyn_cast<llvm::ICmpInst>(value);
  if (compared == nullptr || !analyses_.evolution.isSCEVable(compared->getOperand(0)->getType())) {
    return std::nullopt;
  }
  found.predicate = compared->getPredicate();
  found.left = analyses_.evolution.getSCEV(compared->getOperand(0));
  found.right = analyses_.evolution.getSCEV(compared->getOperand(1));
  if (!is_known(box, found.left) || !is_known(box, found.right)) return std::nullopt;
  return found;
}

// Under which `block` is run once in each iteration of `loop` that does not leave it.
std::optional<Refusal> BoxShaper::conditions(Box& box, const BasicBlock* block, const Loop* loop) {
  if (after_ == nullptr) after_ = std::make_unique<llvm::PostDominatorTree>(analyses_.function);
  while (block != loop->getHeader()) {
    const auto* node = analyses_.dominators.getNode(block);
    if (node == nullptr || node->getIDom() == nullptr) break;
    const BasicBlock* above = node->getIDom()->getBlock();
    const bool leaves = above == loop->getExitingBlock();
    if (!leaves && !after_->dominates(block, above)) {
      const auto* branch = llvm::dyn_cast<llvm::BranchInst>(above->getTerminator());
      if (branch == nullptr || !branch->isConditional() || block->getSinglePredecessor() != above ||
          branch->getSuccessor(0) == branch->getSuccessor(1)) {
        return Refusal{"B1", store_of(box), "is run in some iterations only"};
      }
      auto found = condition(box, *branch, branch->getSuccessor(0) == block);
      if (!found) return Refusal{"B1", branch, "is a condition of its row"};
      box.demand(*found);
    }
    block = above;
  }
  if (block == loop->getHeader()) return std::nullopt;
  return Refusal{"B1", store_of(box), "the shape of the loops around"};
}

// One of the loops around the row. `inside` is the block that runs it.
std::optional<Refusal> BoxShaper::around(Box& box, Loop* loop, const BasicBlock* inside) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const Instruction* at = loop->getHeader()->getTerminator();
  const BasicBlock* exiting = loop->getExitingBlock();
  if (!loop->isLoopSimplifyForm() || exiting == nullptr) {
    return Refusal{"B1", at, "the loop around has several exits"};
  }
  if (box.dimensions.size() == Box::dimensions_max) {
    return Refusal{"B1", at, "more than three loops are around the row"};
  }
  llvm::Type* word = llvm::Type::getInt64Ty(at->getContext());
  const SCEV* times = evolution.getBackedgeTakenCount(loop);
  if (!is_known(box, times) || evolution.getTypeSizeInBits(times->getType()) > 64) {
    return Refusal{"B1", at, "how often the loop around runs is not known in front of all"};
  }
  times = evolution.getTruncateOrZeroExtend(times, word);
  if (exiting == inside || !analyses_.dominators.dominates(exiting, inside)) {
    times = evolution.getAddExpr(times, evolution.getOne(word));
  }
  if (auto refusal = conditions(box, inside, loop)) return refusal;
  const auto* moving = llvm::dyn_cast<SCEVAddRecExpr>(box.first);
  if (moving == nullptr || moving->getLoop() != loop || !moving->isAffine()) {
    return Refusal{"B1", at, "its rows are not a constant distance apart in the loop around"};
  }
  const SCEV* stride =
      evolution.getTruncateOrSignExtend(moving->getStepRecurrence(evolution), word);
  if (!is_known(box, stride)) {
    return Refusal{"B1", at, "its rows are not a constant distance apart in the loop around"};
  }
  box.first = moving->getStart();
  if (!evolution.isKnownNonNegative(stride)) {  // the lowest row is the last one, or may be
    const SCEV* steps = evolution.getMinusSCEV(times, evolution.getOne(word));
    const SCEV* reach = evolution.getMulExpr(steps, stride);
    box.first =
        evolution.getAddExpr(box.first, evolution.getSMinExpr(evolution.getZero(word), reach));
    stride = evolution.getAbsExpr(stride, false);
  }
  box.dimensions.push_back({times, stride});
  return std::nullopt;
}

std::optional<Refusal> BoxShaper::shape(Box& box) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  if (!is_known(box, box.row->bytes)) {
    return Refusal{"B1", store_of(box), "its length is not the same in all iterations"};
  }
  box.dimensions.push_back({box.row->bytes, evolution.getOne(box.row->bytes->getType())});
  box.first = box.row->first;
  if (box.nest != nullptr && box.nest != box.site->loop) {
    const BasicBlock* inside = box.site->where()->getParent();
    Loop* loop = analyses_.loops.getLoopFor(inside);
    for (; loop != box.nest->getParentLoop(); loop = loop->getParentLoop()) {
      if (auto refusal = around(box, loop, inside)) return refusal;
      inside = loop->getLoopPreheader();
    }
  }
  if (is_known(box, box.first)) return std::nullopt;
  return Refusal{"B1", store_of(box), "where it begins is not known in front of the nest"};
}

// An end of a range that may not be accessed: it lies at most 2^60 bytes away, so that it wraps in
// no way that the two ends do not show.
bool BoxShaper::keep_small(Box& box, const SCEV* times, const SCEV* step) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  constexpr uint64_t step_max = uint64_t{1} << 40;
  uint64_t times_max = uint64_t{1} << 20;
  const auto less = [&](const SCEV* value, uint64_t than) {
    box.demand({nullptr, llvm::CmpInst::ICMP_ULT, value,
                evolution.getConstant(value->getType(), than), true});
  };
  if (!is_known(box, times) || !is_known(box, step)) return false;
  if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(step)) {
    if (constant->getAPInt().getSignificantBits() > 21) return false;
    times_max = step_max;
  } else {
    const SCEV* shifted =
        evolution.getAddExpr(step, evolution.getConstant(step->getType(), step_max));
    less(shifted, 2 * step_max);
  }
  less(times, times_max);
  return true;
}

// The lowest or highest of an address in all iterations of `loop`; null: not known. `each_time`: it
// is accessed in each of them.
const SCEV* BoxShaper::end_of(Box& box, const SCEV* pointer, bool upper, const Loop* loop,
                              bool each_time) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  if (evolution.isLoopInvariant(pointer, loop)) return pointer;
  llvm::Type* word = llvm::Type::getInt64Ty(analyses_.function.getContext());
  const auto* moving = llvm::dyn_cast<SCEVAddRecExpr>(pointer);
  const SCEV* times = evolution.getSymbolicMaxBackedgeTakenCount(loop);
  if (moving == nullptr || moving->getLoop() != loop || !moving->isAffine() ||
      llvm::isa<llvm::SCEVCouldNotCompute>(times) ||
      evolution.getTypeSizeInBits(times->getType()) > 64) {
    return nullptr;
  }
  times = evolution.getTruncateOrZeroExtend(times, word);
  const SCEV* step = evolution.getTruncateOrSignExtend(moving->getStepRecurrence(evolution), word);
  const bool is_accessed =
      loop->getExitingBlock() != nullptr && (each_time || llvm::isa<llvm::SCEVConstant>(step));
  if (!is_accessed && !keep_small(box, times, step)) return nullptr;
  const SCEV* reach = evolution.getMulExpr(times, step);
  if (evolution.isKnownNonNegative(step)) {
    if (!upper) return moving->getStart();
  } else if (evolution.isKnownNonPositive(step)) {
    if (upper) return moving->getStart();
  } else {
    const SCEV* none = evolution.getZero(word);
    reach = upper ? evolution.getSMaxExpr(none, reach) : evolution.getSMinExpr(none, reach);
  }
  return evolution.getAddExpr(moving->getStart(), reach);
}

// Of a block in it: because nothing leads past it, or because the box's row comes after it.
bool BoxShaper::is_in_each(const Box& box, const Loop* loop, const BasicBlock* inside) const {
  const BasicBlock* exiting = loop->getExitingBlock();
  if (exiting == nullptr) return false;
  if (analyses_.dominators.dominates(inside, exiting)) return true;
  const BasicBlock* row = box.site->where()->getParent();
  return loop->contains(row) && analyses_.dominators.dominates(inside, row) &&
         !analyses_.dominators.dominates(exiting, inside);
}

bool BoxShaper::take(Box& box, const Access& access) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const SCEV* pointer = evolution.getSCEV(access.pointer());
  Range range{pointer, evolution.getAddExpr(pointer, access.bytes)};
  const BasicBlock* inside = access.at->getParent();
  const size_t known = box.conditions.size();
  bool each_time = true;
  const Loop* behind =
      box.nest == nullptr ? analyses_.loops.getLoopFor(inside) : box.nest->getParentLoop();
  for (const Loop* loop = analyses_.loops.getLoopFor(inside); loop != behind;
       loop = loop->getParentLoop()) {
    each_time &= is_in_each(box, loop, inside);
    range.low = end_of(box, range.low, false, loop, each_time);
    if (range.low == nullptr) return false;
    range.high = end_of(box, range.high, true, loop, each_time);
    inside = loop->getLoopPreheader();
    if (range.high == nullptr || inside == nullptr) return false;
  }
  if (!is_known(box, range.low) || !is_known(box, range.high)) return false;
  if (box.conditions.size() != known) {
    box.demand({nullptr, llvm::CmpInst::ICMP_ULE, range.low, range.high, true});
  }
  return add(evolution, box.others, range);
}

}  // namespace perdure::ipv
