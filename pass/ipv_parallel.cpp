// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_parallel.hpp"

#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/PostDominators.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
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

// __kmpc_fork_call(place, number of the arguments that follow the body, body, …)
constexpr unsigned fork_body = 2;
constexpr unsigned fork_fixed = 3;
constexpr unsigned body_fixed = 2;  // parameters by which the library tells threads their numbers

constexpr size_t others_max = 64;
constexpr int64_t merged_gap = 1024;  // ranges that are nearer are tested as one

bool calls_as_declared(const llvm::CallInst& fork, const llvm::Function& body) {
  const auto* count = llvm::dyn_cast<llvm::ConstantInt>(fork.getArgOperand(1));
  const unsigned captured = fork.arg_size() - fork_fixed;
  if (count == nullptr || count->getZExtValue() != captured || body.isVarArg() ||
      body.arg_size() != captured + body_fixed || !body.getReturnType()->isVoidTy()) {
    return false;
  }
  for (unsigned i = 0; i < captured; ++i) {
    if (fork.getArgOperand(fork_fixed + i)->getType() != body.getArg(body_fixed + i)->getType()) {
      return false;
    }
  }
  return true;
}

bool is_on_stack(const Value* pointer) {
  return llvm::isa<llvm::AllocaInst>(llvm::getUnderlyingObject(pointer, 0));
}

// Run once more, nobody can tell.
bool is_repeatable(const Instruction& instruction) {
  if (const auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction)) return load->isSimple();
  if (const auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction)) {
    return store->isSimple() && is_on_stack(store->getPointerOperand());
  }
  if (const auto* memory = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction)) {
    return !memory->isVolatile() && is_on_stack(memory->getRawDest());
  }
  if (const auto* intrinsic = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction)) {
    if (intrinsic->isAssumeLikeIntrinsic()) return true;
  }
  return !instruction.mayHaveSideEffects();
}

Instruction* place_of(const Site& site, const llvm::LoopInfo& loops) {
  Loop* outermost = site.surrounding(loops);
  if (outermost == nullptr) {
    BasicBlock* before = site.intrinsic->getParent()->getSinglePredecessor();
    return before == nullptr ? nullptr : before->getTerminator();
  }
  while (outermost->getParentLoop() != nullptr) outermost = outermost->getParentLoop();
  BasicBlock* before = outermost->getLoopPreheader();
  return before == nullptr ? nullptr : before->getTerminator();
}

}  // namespace

std::vector<ParallelBody> parallel_bodies(llvm::Module& module) {
  std::vector<ParallelBody> found;
  llvm::Function* fork_function = module.getFunction("__kmpc_fork_call");
  if (fork_function == nullptr) return found;
  for (llvm::User* user : fork_function->users()) {
    auto* fork = llvm::dyn_cast<llvm::CallInst>(user);
    if (fork == nullptr || fork->getCalledFunction() != fork_function) continue;
    auto* body = llvm::dyn_cast<llvm::Function>(fork->getArgOperand(fork_body));
    if (body == nullptr || body->isDeclaration() || !calls_as_declared(*fork, *body)) continue;
    const auto known = std::find_if(found.begin(), found.end(),
                                    [body](const auto& entry) { return entry.body == body; });
    if (known == found.end()) {
      found.push_back({body, {fork}});
    } else {
      known->forks.push_back(fork);
    }
  }
  return found;
}

BoxProver::BoxProver(Analyses& analyses, Finder& finder, std::vector<Site>& sites, SerialForm& form)
    : analyses_(analyses),
      finder_(finder),
      sites_(sites),
      form_(form),
      of_body_(*form.share->getFunction()) {
  for (const auto& entry : form.map) {
    const Value* now = entry.second;
    const auto* load = llvm::dyn_cast<llvm::LoadInst>(entry.first);
    // It became what the variable held.
    if (load != nullptr && llvm::isa<llvm::AllocaInst>(load->getPointerOperand()) &&
        !(llvm::isa_and_nonnull<llvm::LoadInst>(now) &&
          llvm::isa<llvm::AllocaInst>(llvm::cast<llvm::LoadInst>(now)->getPointerOperand()))) {
      continue;
    }
    if (now != nullptr) origin_[now] = entry.first;
  }
}

const Instruction* BoxProver::origin(const Value* now) const {
  const auto known = origin_.find(now);
  return known == origin_.end() ? nullptr : llvm::dyn_cast<Instruction>(known->second);
}

const Instruction* BoxProver::store_of(const Member& member) const {
  return sites_[member.site].rows[member.row].stores.front().at;
}

void BoxProver::refuse(const Member& member, Refusal refusal) {
  const Site& site = sites_[member.site];
  Loop* nest = site.surrounding(analyses_.loops);
  while (nest != nullptr && nest->getParentLoop() != nullptr) nest = nest->getParentLoop();
  refused_.push_back({site.rows[member.row].base, nest, std::move(refusal), store_of(member)});
}

// Between the calls that share it out and end it.
bool BoxProver::is_in_shared_loop(const Instruction* at) const {
  const Instruction* before = origin(at);
  if (before == nullptr) return false;
  return of_body_.dominates(form_.share, before) &&
         llvm::none_of(form_.ends, [&](const llvm::CallInst* end) {
           return llvm::isPotentiallyReachable(end, before, nullptr, &of_body_);
         });
}

std::vector<Member> BoxProver::candidates() {
  std::vector<Member> found;
  for (size_t site = 0; site < sites_.size(); ++site) {
    for (size_t row = 0; row < sites_[site].rows.size(); ++row) {
      const Member member{site, row};
      const Value* base = sites_[site].rows[row].base;
      if (is_private(base) || is_constant(base)) continue;
      if (!sites_[site].rows[row].copied.empty()) {  // another thread may have what is copied
        refuse(member, {"B1", store_of(member), "does not store to each byte for certain"});
        continue;
      }
      if (is_in_shared_loop(store_of(member))) {
        found.push_back(member);
      } else {
        refuse(member, {"B1", store_of(member), "is outside of the loop that is shared out"});
      }
    }
  }
  return found;
}

// The first of the loops, in front of all others.
std::optional<Refusal> BoxProver::choose_place(const std::vector<Member>& members) {
  for (const Member& member : members) {
    Instruction* place = place_of(sites_[member.site], analyses_.loops);
    if (place == nullptr) return Refusal{"B1", store_of(member), "the shape of the loop"};
    if (place_ == nullptr || analyses_.dominators.dominates(place, place_)) place_ = place;
  }
  return std::nullopt;
}

// B4.
std::optional<Refusal> BoxProver::check_prefix() {
  llvm::SmallPtrSet<BasicBlock*, 16> seen{place_->getParent()};
  llvm::SmallVector<BasicBlock*, 16> open{place_->getParent()};
  while (!open.empty()) {
    BasicBlock* block = open.pop_back_val();
    if (analyses_.loops.getLoopFor(block) != nullptr) {
      return Refusal{"B4", block->getTerminator(), "a loop is in front of the shared one"};
    }
    for (Instruction& instruction : *block) {
      if (&instruction == place_) break;
      if (!is_repeatable(instruction)) {
        return Refusal{"B4", &instruction, "has an effect in front of the shared loop"};
      }
    }
    for (BasicBlock* before : llvm::predecessors(block)) {
      if (seen.insert(before).second) open.push_back(before);
    }
  }
  return std::nullopt;
}

std::optional<Refusal> BoxProver::collect_accesses() {
  for (Instruction& instruction : llvm::instructions(analyses_.function)) {
    if (auto refusal = finder_.effects(instruction, accesses_)) {
      refusal->obligation = "B3";
      return refusal;
    }
  }
  return std::nullopt;
}

bool BoxProver::is_known(const SCEV* expression) {
  const llvm::SCEVExpander expander(analyses_.evolution,
                                    analyses_.function.getParent()->getDataLayout(), "perdure");
  return !llvm::isa<llvm::SCEVCouldNotCompute>(expression) &&
         expander.isSafeToExpandAt(expression, place_);
}

std::optional<Condition> BoxProver::condition(const llvm::BranchInst& branch, bool wanted) {
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
std::optional<Refusal> BoxProver::conditions(Box& box, const BasicBlock* block,
                                             const BasicBlock* from, const Loop* loop) {
  const llvm::PostDominatorTree after(analyses_.function);
  while (block != from) {
    const auto* node = analyses_.dominators.getNode(block);
    if (node == nullptr || node->getIDom() == nullptr) break;
    const BasicBlock* above = node->getIDom()->getBlock();
    const bool leaves = loop != nullptr && above == loop->getExitingBlock();
    if (!leaves && !after.dominates(block, above)) {
      const auto* branch = llvm::dyn_cast<llvm::BranchInst>(above->getTerminator());
      if (branch == nullptr || !branch->isConditional() || block->getSinglePredecessor() != above ||
          branch->getSuccessor(0) == branch->getSuccessor(1)) {
        return Refusal{"B1", store_of(box.member), "is run in some iterations only"};
      }
      auto found = condition(*branch, branch->getSuccessor(0) == block);
      if (!found) return Refusal{"B1", branch, "is a condition of its row"};
      box.conditions.push_back(*found);
    }
    block = above;
  }
  if (block == from) return std::nullopt;
  return Refusal{"B1", store_of(box.member), "the shape of the loops around"};
}

// One of the loops around the row. `inside` is the block that runs it.
std::optional<Refusal> BoxProver::around(Box& box, Loop* loop, const BasicBlock* inside,
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
const SCEV* BoxProver::length(Box& box, const Row& row, Loop* loop) {
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
  box.conditions.push_back(
      {nullptr, llvm::CmpInst::ICMP_SGT, length, evolution.getZero(length->getType()), true});
  return evolution.getMulExpr(
      length, evolution.getConstant(length->getType(), static_cast<uint64_t>(row.step)));
}

// B1.
std::optional<Refusal> BoxProver::shape(Box& box) {
  const Site& site = sites_[box.member.site];
  const Row& row = site.rows[box.member.row];
  const Instruction* store = store_of(box.member);
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
  for (; loop != nullptr; loop = loop->getParentLoop()) {
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
const SCEV* BoxProver::times_max(const Loop* loop) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const auto known = lengths_.find(loop);
  if (known == lengths_.end()) return evolution.getSymbolicMaxBackedgeTakenCount(loop);
  return evolution.getMinusSCEV(known->second, evolution.getOne(known->second->getType()));
}

// Over all iterations of `loop`.
bool BoxProver::widen(Range& range, const Loop* loop) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  llvm::Type* word = llvm::Type::getInt64Ty(analyses_.function.getContext());
  const auto end_of = [&](const SCEV* pointer, bool upper) -> const SCEV* {
    if (evolution.isLoopInvariant(pointer, loop)) return pointer;
    const auto* moving = llvm::dyn_cast<SCEVAddRecExpr>(pointer);
    const SCEV* times = times_max(loop);
    if (moving == nullptr || moving->getLoop() != loop || !moving->isAffine() ||
        llvm::isa<llvm::SCEVCouldNotCompute>(times) ||
        evolution.getTypeSizeInBits(times->getType()) > 64) {
      return nullptr;
    }
    const SCEV* step =
        evolution.getTruncateOrSignExtend(moving->getStepRecurrence(evolution), word);
    const SCEV* reach = evolution.getMulExpr(evolution.getTruncateOrZeroExtend(times, word), step);
    if (evolution.isKnownNonNegative(step)) {
      if (!upper) return moving->getStart();
    } else if (evolution.isKnownNonPositive(step)) {
      if (upper) return moving->getStart();
    } else {
      const SCEV* none = evolution.getZero(word);
      reach = upper ? evolution.getSMaxExpr(none, reach) : evolution.getSMinExpr(none, reach);
    }
    return evolution.getAddExpr(moving->getStart(), reach);
  };
  range.low = end_of(range.low, false);
  range.high = end_of(range.high, true);
  return range.low != nullptr && range.high != nullptr;
}

// Of all iterations; code beside the loop, only if it is the same for each thread.
std::optional<Range> BoxProver::range(const Access& access) {
  const Loop* loop = analyses_.loops.getLoopFor(access.at->getParent());
  if (loop == nullptr) {
    const Instruction* before = origin(access.at);
    if (before == nullptr || form_.of_share.contains(before->getOperand(access.operand))) {
      return std::nullopt;
    }
  }
  const SCEV* pointer = analyses_.evolution.getSCEV(access.pointer());
  Range found{pointer, analyses_.evolution.getAddExpr(pointer, access.bytes)};
  for (; loop != nullptr; loop = loop->getParentLoop()) {
    if (!widen(found, loop)) return std::nullopt;
  }
  if (!is_known(found.low) || !is_known(found.high)) return std::nullopt;
  return found;
}

// An iteration that the optimiser took out of the loop is another one for each thread.
bool BoxProver::is_beside(const Row& row, const Access& access) {
  const auto* under = llvm::dyn_cast<llvm::SCEVUnknown>(
      analyses_.evolution.getPointerBase(analyses_.evolution.getSCEV(access.pointer())));
  if (under == nullptr || under->getValue() != row.base) return false;
  const auto outermost = [this](const Instruction* at) {
    const Loop* loop = analyses_.loops.getLoopFor(at->getParent());
    while (loop != nullptr && loop->getParentLoop() != nullptr) loop = loop->getParentLoop();
    return loop;
  };
  return outermost(access.at) != outermost(row.stores.front().at) && is_in_shared_loop(access.at);
}

std::vector<Range> BoxProver::captured() const {
  std::vector<Range> all;
  llvm::Type* word = llvm::Type::getInt64Ty(analyses_.function.getContext());
  for (const Captured& variable : form_.captured) {
    const SCEV* low = analyses_.evolution.getSCEV(variable.pointer);
    const SCEV* bytes = analyses_.evolution.getConstant(word, variable.bytes);
    all.push_back({low, analyses_.evolution.getAddExpr(low, bytes)});
  }
  return all;
}

// Takes the range in, perhaps as one with another that is near.
bool BoxProver::take(std::vector<Range>& ranges, const Range& range) {
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

// The row's own stores lie in the object, which is compared with what is captured, as that is read.
std::optional<Refusal> BoxProver::prove_write(Box& box, const Access& access) {
  if (!access.writes || form_.captured.empty() || is_on_stack(access.pointer())) {
    return std::nullopt;
  }
  const auto touched = range(access);
  if (!touched || !take(box.writes, *touched)) {
    return Refusal{"B3", access.at, "may change what the loop computes its addresses of"};
  }
  return std::nullopt;
}

// B3.
std::optional<Refusal> BoxProver::prove_access(Box& box, const Access& access) {
  const Row& row = sites_[box.member.site].rows[box.member.row];
  if (row.owns(access)) return std::nullopt;
  if (auto refusal = prove_write(box, access)) return refusal;
  if (is_disjoint(row.base, access.pointer())) return std::nullopt;
  if (is_same_array(analyses_.evolution, row.base, access)) {
    return Refusal{"B3", access.at,
                   access.writes ? "stores to the same array, in no row or in another one"
                                 : "reads another element of the array"};
  }
  if (is_beside(row, access)) {
    return Refusal{"B3", access.at, "is a part of the parallel loop that stands apart"};
  }
  const auto touched = range(access);
  if (!touched) {
    return Refusal{"B3", access.at, "its addresses are not known in front of the parallel loop"};
  }
  if (take(box.others, *touched)) return std::nullopt;
  return Refusal{"B3", access.at, "too many other arrays in the region"};
}

std::optional<Refusal> BoxProver::prove(Box& box) {
  const Row& row = sites_[box.member.site].rows[box.member.row];
  if (auto refusal = shape(box)) return refusal;
  for (const auto* accesses : {&row.stores, &row.loads_before, &row.loads_behind}) {
    for (const Access& access : *accesses) {
      if (origin(access.at) == nullptr) return Refusal{"B2", access.at, "the shape of the loop"};
    }
  }
  for (const Access& access : accesses_) {
    if (auto refusal = prove_access(box, access)) return refusal;
  }
  return std::nullopt;
}

void BoxProver::run() {
  const std::vector<Member> members = candidates();
  if (members.empty()) return;
  auto refusal = choose_place(members);
  if (!refusal) refusal = check_prefix();
  if (!refusal) refusal = collect_accesses();
  for (const Member& member : members) {
    Box box;
    box.member = member;
    auto stopped = refusal;
    if (!stopped) stopped = prove(box);
    if (!stopped && boxes_.size() == boxes_max) {
      stopped = Refusal{"B1", store_of(member), "too many rows in the region"};
    }
    if (stopped) {
      refuse(member, *stopped);
    } else {
      boxes_.push_back(std::move(box));
    }
  }
}

}  // namespace perdure::ipv
