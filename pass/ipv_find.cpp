// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_find.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>

namespace perdure::ipv {

using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;

const SCEVAddRecExpr* recurrence(LoopFacts& facts, Loop* loop, const Access& access) {
  const auto* found = llvm::dyn_cast<SCEVAddRecExpr>(facts.evolution->getSCEV(access.pointer()));
  if (found == nullptr) found = facts.evolution->getAsAddRec(access.pointer());
  return found != nullptr && found->getLoop() == loop && found->isAffine() ? found : nullptr;
}

std::optional<int64_t> constant_step(const SCEVAddRecExpr* of, const LoopFacts& facts,
                                     llvm::ScalarEvolution& evolution) {
  const SCEV* found = of->getStepRecurrence(evolution);
  const auto assumed = facts.assumed_steps.find(found);
  if (assumed != facts.assumed_steps.end()) return assumed->second;
  const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(found);
  if (step == nullptr || step->getAPInt().getSignificantBits() > 32) return std::nullopt;
  return step->getAPInt().getSExtValue();
}

bool precedes(const llvm::DominatorTree& dominators, const Instruction* first,
              const Instruction* second) {
  if (first == second) return false;
  if (first->getParent() == second->getParent()) return first->comesBefore(second);
  return dominators.dominates(first->getParent(), second->getParent());
}

std::optional<int64_t> distance(llvm::ScalarEvolution& evolution, const SCEV* from,
                                const SCEV* to) {
  const auto* found = llvm::dyn_cast<llvm::SCEVConstant>(evolution.getMinusSCEV(to, from));
  if (found == nullptr || found->getAPInt().getSignificantBits() > 62) return std::nullopt;
  return found->getAPInt().getSExtValue();
}

bool Row::owns(const Access& access) const {
  const auto has = [&access](const std::vector<Access>& list) {
    return std::find(list.begin(), list.end(), access) != list.end();
  };
  return has(stores) || has(loads_before) || has(loads_behind);
}

Instruction* Site::where() const {
  return loop != nullptr ? loop->getLoopPreheader()->getTerminator() : intrinsic;
}

Loop* Site::surrounding(const llvm::LoopInfo& loops) const {
  return loop != nullptr ? loop : loops.getLoopFor(intrinsic->getParent());
}

bool Finder::is_safe(const SCEV* expression, const Instruction* at) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const llvm::SCEVExpander expander(evolution, analyses_.function.getParent()->getDataLayout(),
                                    "perdure");
  return !llvm::isa<llvm::SCEVCouldNotCompute>(expression) &&
         expander.isSafeToExpandAt(expression, at);
}

std::optional<Refusal> Finder::check_shape(Loop* loop, LoopFacts& facts) {
  const Instruction* at = loop->getHeader()->getTerminator();
  if (!loop->isLoopSimplifyForm() || !loop->isSafeToClone()) return Refusal{"S1", at, "its shape"};
  facts.exiting = loop->getExitingBlock();
  const SCEV* taken = facts.exiting != nullptr
                          ? facts.evolution->getBackedgeTakenCount()
                          : analyses_.evolution.getSymbolicMaxBackedgeTakenCount(loop);
  if (llvm::isa<llvm::SCEVCouldNotCompute>(taken) ||
      analyses_.evolution.getTypeSizeInBits(taken->getType()) > 64) {
    return Refusal{"S1", at, "how often it runs is not known before it"};
  }
  facts.taken =
      analyses_.evolution.getTruncateOrZeroExtend(taken, llvm::Type::getInt64Ty(at->getContext()));
  if (!is_safe(facts.taken, loop->getLoopPreheader()->getTerminator())) {
    facts.taken = nullptr;
    return Refusal{"S1", at, "how often it runs is not known before it"};
  }
  if (facts.exiting == nullptr || loop->getExitBlock() == nullptr) {
    facts.exiting = nullptr;
    return Refusal{"S1", at, "has several exits"};
  }
  return std::nullopt;
}

LoopFacts& Finder::facts(Loop* loop) {
  std::unique_ptr<LoopFacts>& known = facts_[loop];
  if (known != nullptr) return *known;
  known = std::make_unique<LoopFacts>();
  known->evolution = std::make_unique<llvm::PredicatedScalarEvolution>(analyses_.evolution, *loop);
  known->opaque = check_shape(loop, *known);
  for (llvm::BasicBlock* block : loop->blocks()) {
    for (Instruction& instruction : *block) {
      if (auto refusal = effects(instruction, known->accesses)) known->opaque = refusal;
    }
  }
  return *known;
}

const SCEV* Finder::executions(const Access& access, const LoopFacts& facts) {
  const llvm::BasicBlock* block = access.at->getParent();
  const bool behind_exit = facts.exiting != nullptr && facts.exiting != block &&
                           analyses_.dominators.dominates(facts.exiting, block);
  return behind_exit ? facts.taken : analyses_.evolution.getAddExpr(facts.taken, word(1));
}

std::optional<Range> Finder::range(const Access& access, Loop* loop) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  LoopFacts& facts = this->facts(loop);
  const Instruction* where =
      loop->getLoopPreheader() == nullptr ? nullptr : loop->getLoopPreheader()->getTerminator();
  if (where == nullptr || access.bytes == nullptr || !is_safe(access.bytes, where)) {
    return std::nullopt;
  }
  const auto behind = [&](const SCEV* pointer) {
    return evolution.getAddExpr(pointer, access.bytes);
  };
  const SCEV* pointer = facts.evolution->getSCEV(access.pointer());
  Range found{pointer, behind(pointer)};
  if (!evolution.isLoopInvariant(pointer, loop)) {
    const SCEVAddRecExpr* moving = recurrence(facts, loop, access);
    if (moving == nullptr || facts.taken == nullptr) return std::nullopt;
    const SCEV* first = moving->getStart();
    const SCEV* steps = evolution.getMinusSCEV(executions(access, facts), word(1));
    const SCEV* step =
        evolution.getTruncateOrSignExtend(moving->getStepRecurrence(evolution), word(0)->getType());
    if (!evolution.isLoopInvariant(step, loop)) return std::nullopt;
    const SCEV* last = evolution.getAddExpr(first, evolution.getMulExpr(steps, step));
    if (const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(step)) {
      if (constant->getAPInt().getSignificantBits() > 32) return std::nullopt;
      if (constant->getAPInt().isNegative()) std::swap(first, last);
      found = {first, behind(last)};
    } else if (facts.exiting == nullptr) {
      return std::nullopt;  // of the steps that are not taken nothing is known
    } else {
      found = {evolution.getUMinExpr(first, last), behind(evolution.getUMaxExpr(first, last))};
    }
  }
  if (!is_safe(found.low, where) || !is_safe(found.high, where)) return std::nullopt;
  return found;
}

// A step that is not constant is taken to be what the stores of an iteration cover together: the
// elements, or the components of one, of an array whose innermost extent is only known at run time.
void Finder::assume_steps(Loop* loop, LoopFacts& facts) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  llvm::MapVector<const SCEV*, std::vector<const Access*>> by_step;
  for (const Access& store : facts.accesses) {
    if (!store.writes || store.constant_bytes() == 0) continue;
    const SCEVAddRecExpr* address = recurrence(facts, loop, store);
    if (address == nullptr || constant_step(address, facts, evolution)) continue;
    by_step[address->getStepRecurrence(evolution)].push_back(&store);
  }
  for (const auto& [step, stores] : by_step) {
    const SCEVAddRecExpr* first = recurrence(facts, loop, *stores.front());
    int64_t low = 0;
    int64_t high = static_cast<int64_t>(stores.front()->constant_bytes());
    for (const Access* store : stores) {
      const auto from = distance(evolution, first, recurrence(facts, loop, *store));
      if (!from || std::abs(*from) > element_bytes_max) continue;  // of another array
      low = std::min(low, *from);
      high = std::max(high, *from + static_cast<int64_t>(store->constant_bytes()));
    }
    if (high - low > element_bytes_max ||
        !is_safe(step, loop->getLoopPreheader()->getTerminator())) {
      continue;
    }
    const SCEV* assumed = evolution.getConstant(step->getType(), static_cast<uint64_t>(high - low));
    facts.evolution->addPredicate(*evolution.getEqualPredicate(step, assumed));
    facts.assumed_steps[step] = high - low;
  }
}

std::vector<Row> Finder::rows(Loop* loop) {
  LoopFacts& facts = this->facts(loop);
  assume_steps(loop, facts);
  const llvm::BasicBlock* latch = loop->getLoopLatch();
  std::vector<std::vector<Access>> groups;
  for (const Access& store : facts.accesses) {
    if (!store.writes || store.through != nullptr) continue;
    const auto refuse = [&](const std::string& why) {
      refused_.emplace_back(loop, Refusal{"S1", store.at, why});
    };
    const SCEVAddRecExpr* address = recurrence(facts, loop, store);
    if (address == nullptr || store.constant_bytes() == 0) {
      refuse("its address is not a constant step from the iteration before");
      continue;
    }
    const auto step = constant_step(address, facts, analyses_.evolution);
    if (!step || *step == 0) {
      refuse("its step is not a constant");
      continue;
    }
    if (!is_in_each(loop, store.at) && facts.exiting != latch) {
      refuse("is conditional");
      continue;
    }
    const auto fits = [&](const std::vector<Access>& group) {
      const SCEVAddRecExpr* lead = recurrence(facts, loop, group.front());
      const auto from = distance(analyses_.evolution, lead, address);
      return from && std::abs(*from) < 2 * std::abs(*step) &&
             constant_step(lead, facts, analyses_.evolution) == step &&
             executions(group.front(), facts) == executions(store, facts);
    };
    const auto group = std::find_if(groups.begin(), groups.end(), fits);
    if (group == groups.end()) {
      groups.push_back({store});
    } else {
      group->push_back(store);
    }
  }
  std::vector<Row> found;
  for (std::vector<Access>& group : groups) {
    if (auto row = tile(loop, facts, std::move(group))) found.push_back(std::move(*row));
  }
  return found;
}

std::optional<Site> Finder::intrinsic_site(Instruction& instruction) {
  auto* intrinsic = llvm::dyn_cast<llvm::MemIntrinsic>(&instruction);
  std::vector<Access> accesses;
  if (intrinsic == nullptr || effects(instruction, accesses) || accesses.empty()) {
    return std::nullopt;
  }
  const uint64_t bytes = accesses.front().constant_bytes();
  if (bytes != 0 && bytes < rows_bytes_min) return std::nullopt;
  Row row;
  row.first = analyses_.evolution.getSCEV(intrinsic->getDest());
  row.bytes = accesses.front().bytes;
  const auto* base =
      llvm::dyn_cast<llvm::SCEVUnknown>(analyses_.evolution.getPointerBase(row.first));
  if (base == nullptr) return std::nullopt;
  row.base = base->getValue();
  row.stores.push_back(accesses.front());
  Site site;
  site.intrinsic = intrinsic;
  site.rows.push_back(std::move(row));
  return site;
}

std::vector<Site> Finder::sites() {
  std::vector<Site> found;
  llvm::SmallPtrSet<const Loop*, 16> with_rows;
  for (Loop* loop : analyses_.loops.getLoopsInPreorder()) {
    if (!loop->isInnermost()) continue;
    LoopFacts& facts = this->facts(loop);
    const bool stores = std::any_of(facts.accesses.begin(), facts.accesses.end(),
                                    [](const Access& access) { return access.writes; });
    if (!stores) continue;
    if (facts.opaque) {
      refused_.emplace_back(loop, *facts.opaque);
      continue;
    }
    Site site;
    site.loop = loop;
    site.rows = rows(loop);
    if (site.rows.empty()) continue;
    with_rows.insert(loop);
    found.push_back(std::move(site));
  }
  for (llvm::BasicBlock& block : analyses_.function) {
    if (with_rows.contains(analyses_.loops.getLoopFor(&block))) continue;
    for (Instruction& instruction : block) {
      if (auto site = intrinsic_site(instruction)) found.push_back(std::move(*site));
    }
  }
  return found;
}

}  // namespace perdure::ipv
