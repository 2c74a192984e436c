// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_find.hpp"

#include <llvm/IR/IntrinsicInst.h>
#include <llvm/Transforms/Utils/ScalarEvolutionExpander.h>

#include <algorithm>

namespace perdure::ipv {

using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;

// The access's address from iteration to iteration, if it is a constant distance away; else null.
const SCEVAddRecExpr* Finder::recurrence(Loop* loop, const Access& access) {
  const auto* found = llvm::dyn_cast<SCEVAddRecExpr>(analyses_.evolution.getSCEV(access.pointer()));
  return found != nullptr && found->getLoop() == loop && found->isAffine() ? found : nullptr;
}

std::optional<int64_t> Finder::constant_step(const SCEVAddRecExpr* of) {
  const auto* step = llvm::dyn_cast<llvm::SCEVConstant>(of->getStepRecurrence(analyses_.evolution));
  if (step == nullptr || step->getAPInt().getSignificantBits() > 32) return std::nullopt;
  return step->getAPInt().getSExtValue();
}

std::optional<int64_t> distance(llvm::ScalarEvolution& evolution, const SCEV* from,
                                const SCEV* to) {
  const auto* found = llvm::dyn_cast<llvm::SCEVConstant>(evolution.getMinusSCEV(to, from));
  if (found == nullptr || found->getAPInt().getSignificantBits() > 62) return std::nullopt;
  return found->getAPInt().getSExtValue();
}

bool Row::owns(const Access& access) const {
  return llvm::is_contained(stores, access) || llvm::is_contained(loads_before, access) ||
         llvm::is_contained(loads_behind, access);
}

Instruction* Site::where() const {
  return loop != nullptr ? loop->getLoopPreheader()->getTerminator() : intrinsic;
}

bool is_known(const Analyses& analyses, const SCEV* expression, const Instruction* at) {
  const llvm::SCEVExpander expander(analyses.evolution, at->getDataLayout(), "perdure");
  return !llvm::isa<llvm::SCEVCouldNotCompute>(expression) &&
         expander.isSafeToExpandAt(expression, at);
}

bool Finder::is_in_each(const Loop* loop, const Instruction* at) const {
  return analyses_.dominators.dominates(at->getParent(), loop->getLoopLatch());
}

std::optional<Refusal> Finder::check_shape(Loop* loop, LoopFacts& facts) {
  const Instruction* at = loop->getHeader()->getTerminator();
  if (!loop->isLoopSimplifyForm()) return Refusal{"S1", at, "its shape"};
  if (!loop->isInnermost()) return std::nullopt;
  if (!loop->isSafeToClone()) return Refusal{"S1", at, "its shape"};
  facts.exiting = loop->getExitingBlock();
  if (facts.exiting == nullptr || loop->getExitBlock() == nullptr) {
    return Refusal{"S1", at, "has several exits"};
  }
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const SCEV* taken = evolution.getBackedgeTakenCount(loop);
  if (!llvm::isa<llvm::SCEVCouldNotCompute>(taken) &&
      evolution.getTypeSizeInBits(taken->getType()) <= 64) {
    facts.taken = evolution.getTruncateOrZeroExtend(taken, word(0)->getType());
  }
  if (facts.taken == nullptr ||
      !is_known(analyses_, facts.taken, loop->getLoopPreheader()->getTerminator())) {
    return Refusal{"S1", at, "how often it runs is not known before it"};
  }
  return std::nullopt;
}

const LoopFacts& Finder::facts(Loop* loop) {
  std::unique_ptr<LoopFacts>& known = facts_[loop];
  if (known != nullptr) return *known;
  auto facts = std::make_unique<LoopFacts>();
  facts->opaque = check_shape(loop, *facts);
  for (llvm::BasicBlock* block : loop->blocks()) {
    for (Instruction& instruction : *block) {
      auto refusal = effects(instruction, facts->accesses);
      if (refusal && !facts->opaque) facts->opaque = std::move(refusal);
    }
  }
  known = std::move(facts);
  return *known;
}

const SCEV* Finder::executions(const Access& access, const LoopFacts& facts) {
  const llvm::BasicBlock* block = access.at->getParent();
  const bool behind_exit =
      facts.exiting != block && analyses_.dominators.dominates(facts.exiting, block);
  return behind_exit ? facts.taken : analyses_.evolution.getAddExpr(facts.taken, word(1));
}

std::vector<Row> Finder::rows(Loop* loop) {
  const LoopFacts& facts = this->facts(loop);
  std::vector<std::vector<Access>> groups;
  for (const Access& store : facts.accesses) {
    if (!store.writes || llvm::isa<llvm::MemIntrinsic>(store.at)) continue;
    const auto refuse = [&](const char* why) {
      refused_.emplace_back(loop, Refusal{"S1", store.at, why});
    };
    const SCEVAddRecExpr* address = recurrence(loop, store);
    const auto step = address == nullptr ? std::nullopt : constant_step(address);
    if (!step || *step == 0 || store.constant_bytes() == 0) {
      refuse("its address is not a constant step from the iteration before");
      continue;
    }
    if (!is_in_each(loop, store.at)) {
      refuse("is conditional");
      continue;
    }
    const auto fits = [&](const std::vector<Access>& group) {
      const SCEVAddRecExpr* lead = recurrence(loop, group.front());
      const auto from = distance(analyses_.evolution, lead, address);
      return from && std::abs(*from) < 2 * std::abs(*step) && constant_step(lead) == step &&
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
    if (auto row = tile(loop, std::move(group))) found.push_back(std::move(*row));
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
    const LoopFacts& facts = this->facts(loop);
    if (llvm::none_of(facts.accesses, [](const Access& access) { return access.writes; })) continue;
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
