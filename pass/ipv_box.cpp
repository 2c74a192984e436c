// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_box.hpp"

#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>

namespace perdure::ipv {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;
using llvm::Value;

namespace {

constexpr size_t others_max = 64;
constexpr int64_t merged_gap = 1024;  // ranges that are nearer are tested as one

}  // namespace

void Box::demand(const Condition& condition) {
  if (!llvm::is_contained(conditions, condition)) conditions.push_back(condition);
}

void BoxShaper::announce_before(Instruction* place) {
  place_ = place;
  lengths_.clear();
}

bool BoxShaper::is_known(const SCEV* expression) {
  const llvm::SCEVExpander expander(analyses_.evolution,
                                    analyses_.function.getParent()->getDataLayout(), "perdure");
  return !llvm::isa<llvm::SCEVCouldNotCompute>(expression) &&
         expander.isSafeToExpandAt(expression, place_);
}

std::optional<Condition> BoxShaper::condition(const llvm::BranchInst& branch, bool wanted) {
  Value* value = branch.getCondition();
  const auto* computed = llvm::dyn_cast<Instruction>(value);
  Condition found;
  found.wanted = wanted;
  if (computed == nullptr || analyses_.dominators.dominates(computed, place_)) {
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
  if (!is_known(found.left) || !is_known(found.right)) return std::nullopt;
  return found;
}

// Under which `block` is run once each time that `from` is: in an iteration of `loop` that does not
// leave it, or, without one, at all.
std::optional<Refusal> BoxShaper::conditions(Box& box, const BasicBlock* block,
                                             const BasicBlock* from, const Loop* loop) {
  if (after_ == nullptr) after_ = std::make_unique<llvm::PostDominatorTree>(analyses_.function);
  while (block != from) {
    const auto* node = analyses_.dominators.getNode(block);
    if (node == nullptr || node->getIDom() == nullptr) break;
    const BasicBlock* above = node->getIDom()->getBlock();
    const bool leaves = loop != nullptr && above == loop->getExitingBlock();
    if (!leaves && !after_->dominates(block, above)) {
      const auto* branch = llvm::dyn_cast<llvm::BranchInst>(above->getTerminator());
      if (branch == nullptr || !branch->isConditional() || block->getSinglePredecessor() != above ||
          branch->getSuccessor(0) == branch->getSuccessor(1)) {
        return Refusal{"B1", store_of(box), "is run in some iterations only"};
      }
      auto found = condition(*branch, branch->getSuccessor(0) == block);
      if (!found) return Refusal{"B1", branch, "is a condition of its row"};
      box.demand(*found);
    }
    block = above;
  }
  if (block == from) return std::nullopt;
  return Refusal{"B1", store_of(box), "the shape of the loops around"};
}

// One of the loops around the row. `inside` is the block that runs it.
std::optional<Refusal> BoxShaper::around(Box& box, Loop* loop, const BasicBlock* inside,
                                         const SCEV*& first) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const Instruction* at = loop->getHeader()->getTerminator();
  const BasicBlock* exiting = loop->getExitingBlock();
  if (!loop->isLoopSimplifyForm() || exiting == nullptr) {
    return Refusal{"B1", at, "the loop around has several exits"};
  }
  if (box.dimensions.size() == dimensions_max) {
    return Refusal{"B1", at, "more than three loops are around the row"};
  }
  llvm::Type* word = llvm::Type::getInt64Ty(at->getContext());
  const SCEV* times = evolution.getBackedgeTakenCount(loop);
  if (!is_known(times) || evolution.getTypeSizeInBits(times->getType()) > 64) {
    return Refusal{"B1", at, "how often the loop around runs is not known in front of all"};
  }
  times = evolution.getTruncateOrZeroExtend(times, word);
  if (exiting == inside || !analyses_.dominators.dominates(exiting, inside)) {
    times = evolution.getAddExpr(times, evolution.getOne(word));
  }
  if (auto refusal = conditions(box, inside, loop->getHeader(), loop)) return refusal;
  const auto* moving = llvm::dyn_cast<SCEVAddRecExpr>(first);
  if (moving == nullptr || moving->getLoop() != loop || !moving->isAffine()) {
    return Refusal{"B1", at, "its rows are not a constant distance apart in the loop around"};
  }
  const SCEV* stride =
      evolution.getTruncateOrSignExtend(moving->getStepRecurrence(evolution), word);
  if (!is_known(stride)) {
    return Refusal{"B1", at, "its rows are not a constant distance apart in the loop around"};
  }
  first = moving->getStart();
  if (!evolution.isKnownNonNegative(stride)) {  // the lowest row is the last one, or may be
    const SCEV* steps = evolution.getMinusSCEV(times, evolution.getOne(word));
    const SCEV* reach = evolution.getMulExpr(steps, stride);
    first = evolution.getAddExpr(first, evolution.getSMinExpr(evolution.getZero(word), reach));
    stride = evolution.getAbsExpr(stride, false);
  }
  box.dimensions.push_back({times, stride});
  return std::nullopt;
}

// Of a loop from `first` until `first + length`, which moves in the loops around: the sum does not
// overflow, as that is undefined there.
const SCEV* BoxShaper::length(Box& box, const Row& row, Loop* loop) {
  using namespace llvm::PatternMatch;
  if (loop == nullptr || row.step <= 0) return nullptr;
  const BasicBlock* exiting = loop->getExitingBlock();
  const BasicBlock* of_store = row.stores.front().at->getParent();
  if (exiting != of_store && analyses_.dominators.dominates(exiting, of_store)) return nullptr;
  const auto* branch = llvm::dyn_cast<llvm::BranchInst>(exiting->getTerminator());
  const auto* compared = branch == nullptr || !branch->isConditional()
                             ? nullptr
                             : llvm::dyn_cast<llvm::ICmpInst>(branch->getCondition());
  if (compared == nullptr || !loop->contains(branch->getSuccessor(0))) return nullptr;
  Value* next = compared->getOperand(0);
  Value* bound = compared->getOperand(1);
  auto predicate = compared->getPredicate();
  if (!loop->isLoopInvariant(bound)) {
    std::swap(next, bound);
    predicate = compared->getSwappedPredicate();
  }
  Value* counter = nullptr;
  if (predicate != llvm::CmpInst::ICMP_SLT || !next->getType()->isIntegerTy(64) ||
      !match(next, m_NSWAdd(m_Value(counter), m_One()))) {
    return nullptr;
  }
  auto* phi = llvm::dyn_cast<llvm::PHINode>(counter);
  if (phi == nullptr || phi->getParent() != loop->getHeader() ||
      phi->getIncomingValueForBlock(loop->getLoopLatch()) != next) {
    return nullptr;
  }
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const SCEV* start = evolution.getSCEV(phi->getIncomingValueForBlock(loop->getLoopPreheader()));
  Value* one = nullptr;
  Value* other = nullptr;
  if (!match(bound, m_NSWAdd(m_Value(one), m_Value(other)))) return nullptr;
  if (evolution.getSCEV(other) == start) std::swap(one, other);
  const SCEV* length = evolution.getSCEV(other);
  if (evolution.getSCEV(one) != start || !is_known(length)) return nullptr;
  lengths_[loop] = length;
  box.demand(
      {nullptr, llvm::CmpInst::ICMP_SGT, length, evolution.getZero(length->getType()), true});
  return evolution.getMulExpr(
      length, evolution.getConstant(length->getType(), static_cast<uint64_t>(row.step)));
}

// B1.
std::optional<Refusal> BoxShaper::shape(Box& box, const Loop* outermost) {
  const Site& site = sites_[box.member.site];
  const Row& row = row_of(box);
  const Instruction* store = store_of(box);
  if (site.loop != nullptr && !finder_.facts(site.loop).evolution->getPredicate().isAlwaysTrue()) {
    return Refusal{"B1", store, "its addresses hold only where an index does not wrap"};
  }
  const SCEV* bytes = is_known(row.bytes) ? row.bytes : length(box, row, site.loop);
  if (bytes == nullptr) {
    return Refusal{"B1", store, "its length is not the same in all iterations"};
  }
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  box.dimensions.push_back({bytes, evolution.getOne(bytes->getType())});
  box.first = row.first;
  const BasicBlock* inside = site.where()->getParent();
  Loop* loop = site.loop != nullptr ? site.loop->getParentLoop()
                                    : analyses_.loops.getLoopFor(site.intrinsic->getParent());
  const Loop* behind = outermost == nullptr ? nullptr : outermost->getParentLoop();
  for (; loop != behind; loop = loop->getParentLoop()) {
    if (auto refusal = around(box, loop, inside, box.first)) return refusal;
    inside = loop->getLoopPreheader();
  }
  if (auto refusal = conditions(box, inside, place_->getParent(), nullptr)) return refusal;
  if (!is_known(box.first)) {
    return Refusal{"B1", store, "where it begins is not known in front of the loop"};
  }
  return std::nullopt;
}

// How often a loop goes back to its header, at most.
const SCEV* BoxShaper::times_of(const Loop* loop) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const auto known = lengths_.find(loop);
  if (known == lengths_.end()) return evolution.getSymbolicMaxBackedgeTakenCount(loop);
  return evolution.getMinusSCEV(known->second, evolution.getOne(known->second->getType()));
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
  if (!is_known(times) || !is_known(step)) return false;
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
  const SCEV* times = times_of(loop);
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
  const BasicBlock* row = sites_[box.member.site].where()->getParent();
  return loop->contains(row) && analyses_.dominators.dominates(inside, row) &&
         !analyses_.dominators.dominates(exiting, inside);
}

bool BoxShaper::widen(Box& box, Range& range, const Loop* loop, const BasicBlock* inside,
                      const Loop* outermost) {
  const size_t known = box.conditions.size();
  const Loop* behind = outermost == nullptr ? nullptr : outermost->getParentLoop();
  bool each_time = true;
  for (; loop != behind; loop = loop->getParentLoop()) {
    each_time &= is_in_each(box, loop, inside);
    range.low = end_of(box, range.low, false, loop, each_time);
    if (range.low == nullptr) return false;
    range.high = end_of(box, range.high, true, loop, each_time);
    inside = loop->getLoopPreheader();
    if (range.high == nullptr || inside == nullptr) return false;
  }
  if (!is_known(range.low) || !is_known(range.high)) return false;
  if (box.conditions.size() != known) {
    box.demand({nullptr, llvm::CmpInst::ICMP_ULE, range.low, range.high, true});
  }
  return true;
}

bool BoxShaper::take(std::vector<Range>& ranges, const Range& range) {
  for (Range& other : ranges) {
    const auto low = distance(analyses_.evolution, other.low, range.low);
    const auto high = distance(analyses_.evolution, other.high, range.high);
    if (!low || !high || std::abs(*low) > merged_gap || std::abs(*high) > merged_gap) continue;
    if (*low < 0) other.low = range.low;
    if (*high > 0) other.high = range.high;
    return true;
  }
  if (ranges.size() == others_max) return false;
  ranges.push_back(range);
  return true;
}

std::vector<BoxValues::Ends> expand_ranges(llvm::SCEVExpander& expander,
                                           const std::vector<Range>& ranges, Instruction* where) {
  std::vector<BoxValues::Ends> values;
  for (const Range& range : ranges) {
    Value* low = expander.expandCodeFor(range.low, range.low->getType(), where);
    Value* high = expander.expandCodeFor(range.high, range.high->getType(), where);
    llvm::IRBuilder<> builder(where);
    llvm::Type* word = builder.getInt64Ty();
    low = builder.CreateFreeze(builder.CreatePtrToInt(low, word));
    high = builder.CreateFreeze(builder.CreatePtrToInt(high, word));
    values.push_back({low, high});
  }
  return values;
}

namespace {

Value* expand_conditions(llvm::SCEVExpander& expander, const Box& box, Instruction* where) {
  Value* all = llvm::ConstantInt::getTrue(where->getContext());
  for (const Condition& condition : box.conditions) {
    Value* value = condition.value;
    if (value == nullptr) {
      Value* left = expander.expandCodeFor(condition.left, condition.left->getType(), where);
      Value* right = expander.expandCodeFor(condition.right, condition.right->getType(), where);
      value = llvm::IRBuilder<>(where).CreateICmp(condition.predicate, left, right);
    }
    llvm::IRBuilder<> builder(where);
    value = builder.CreateFreeze(value);
    all = builder.CreateAnd(all, condition.wanted ? value : builder.CreateNot(value));
  }
  return all;
}

}  // namespace

BoxValues expand_box(llvm::SCEVExpander& expander, const Box& box, Instruction* where) {
  const auto expand = [&](const SCEV* expression) {
    return expander.expandCodeFor(expression, expression->getType(), where);
  };
  BoxValues values;
  values.first = expand(box.first);
  for (const Box::Dimension& one : box.dimensions) {
    Value* count = expand(one.count);
    values.dimensions.push_back({count, expand(one.stride)});
  }
  values.wanted = expand_conditions(expander, box, where);
  values.others = expand_ranges(expander, box.others, where);
  return values;
}

Value* box_field(llvm::IRBuilderBase& builder, Value* box, uint64_t offset) {
  return builder.CreateConstGEP1_64(builder.getInt8Ty(), box, offset);
}

void describe_box(Instruction* where, const BoxValues& box, Value* memory) {
  llvm::IRBuilder<> builder(where);
  builder.CreateStore(box.first, box_field(builder, memory, first_field));
  builder.CreateStore(builder.getInt64(box.dimensions.size()),
                      box_field(builder, memory, dimensions_field));
  for (size_t d = 0; d < box.dimensions.size(); ++d) {
    builder.CreateStore(box.dimensions[d].count, box_field(builder, memory, counts_field + 8 * d));
    builder.CreateStore(box.dimensions[d].stride,
                        box_field(builder, memory, strides_field + 8 * d));
  }
}

}  // namespace perdure::ipv
