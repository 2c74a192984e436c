// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_parallel.hpp"

#include <llvm/Analysis/CFG.h>
#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>

#include <algorithm>

namespace perdure::ipv {

using llvm::BasicBlock;
using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::Value;

namespace {

// __kmpc_fork_call(place, number of the arguments that follow the body, body, …)
constexpr unsigned fork_body = 2;
constexpr unsigned fork_fixed = 3;
constexpr unsigned body_fixed = 2;  // parameters by which the library tells threads their numbers

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
      shaper_(analyses, finder, sites),
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
  Instruction* first = nullptr;
  for (const Member& member : members) {
    Instruction* place = place_of(sites_[member.site], analyses_.loops);
    if (place == nullptr) return Refusal{"B1", store_of(member), "the shape of the loop"};
    if (first == nullptr || analyses_.dominators.dominates(place, first)) first = place;
  }
  shaper_.announce_before(first);
  return std::nullopt;
}

// B4.
std::optional<Refusal> BoxProver::check_prefix() {
  llvm::SmallPtrSet<BasicBlock*, 16> seen{place()->getParent()};
  llvm::SmallVector<BasicBlock*, 16> open{place()->getParent()};
  while (!open.empty()) {
    BasicBlock* block = open.pop_back_val();
    if (analyses_.loops.getLoopFor(block) != nullptr) {
      return Refusal{"B4", block->getTerminator(), "a loop is in front of the shared one"};
    }
    for (Instruction& instruction : *block) {
      if (&instruction == place()) break;
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

// Of all iterations; code beside the loop, only if it is the same for each thread.
std::optional<Range> BoxProver::range(Box& box, const Access& access) {
  const Loop* loop = analyses_.loops.getLoopFor(access.at->getParent());
  if (loop == nullptr) {
    const Instruction* before = origin(access.at);
    if (before == nullptr || form_.of_share.contains(before->getOperand(access.operand))) {
      return std::nullopt;
    }
  }
  const SCEV* pointer = analyses_.evolution.getSCEV(access.pointer());
  Range found{pointer, analyses_.evolution.getAddExpr(pointer, access.bytes)};
  if (!shaper_.widen(box, found, loop, access.at->getParent())) return std::nullopt;
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

// The row's own stores lie in the object, which is compared with what is captured, as that is read.
std::optional<Refusal> BoxProver::prove_write(Box& box, const Access& access) {
  if (!access.writes || form_.captured.empty() || is_on_stack(access.pointer())) {
    return std::nullopt;
  }
  const auto touched = range(box, access);
  if (!touched || !shaper_.take(box.writes, *touched)) {
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
  const auto touched = range(box, access);
  if (!touched) {
    return Refusal{"B3", access.at, "its addresses are not known in front of the parallel loop"};
  }
  if (shaper_.take(box.others, *touched)) return std::nullopt;
  return Refusal{"B3", access.at, "too many other arrays in the region"};
}

std::optional<Refusal> BoxProver::prove(Box& box) {
  const Row& row = sites_[box.member.site].rows[box.member.row];
  if (auto refusal = shaper_.shape(box)) return refusal;
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
