// SPDX-License-Identifier: BSD-3-Clause
//
// Which bytes a group of stores of an innermost loop makes a row of (S1), and what its loads of
// them may read (S2).
#include <algorithm>

#include "ipv_find.hpp"

namespace perdure::ipv {

using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;

namespace {

// Does `first` come first, in any iteration in which both are reached, if one of them is reached in
// all?
bool precedes(const llvm::DominatorTree& dominators, const Instruction* first,
              const Instruction* second) {
  if (first == second) return false;
  if (first->getParent() == second->getParent()) return first->comesBefore(second);
  return dominators.dominates(first->getParent(), second->getParent());
}

}  // namespace

std::optional<Refusal> Finder::place_load(Loop* loop, Row& row, const Access& load) {
  const LoopFacts& facts = this->facts(loop);
  const Access& lead = row.stores.front();  // the lowest
  const SCEV* lead_address = recurrence(loop, lead);
  const auto bytes = static_cast<int64_t>(load.constant_bytes());
  const SCEVAddRecExpr* address = recurrence(loop, load);
  if (address == nullptr) return std::nullopt;
  const auto from = distance(analyses_.evolution, lead_address, address);
  if (!from || *from < 0 || *from + bytes > std::abs(row.step)) return std::nullopt;
  bool before = true;  // wherever the stores are
  bool covered_behind = false;
  for (const Access& store : row.stores) {
    const int64_t at = *distance(analyses_.evolution, lead_address, recurrence(loop, store));
    const auto width = static_cast<int64_t>(store.constant_bytes());
    if (at >= *from + bytes || at + width <= *from) continue;
    const bool after = precedes(analyses_.dominators, store.at, load.at);
    before &= !after;
    covered_behind |= after && at <= *from && at + width >= *from + bytes;
  }
  if (!before && !covered_behind) {
    return Refusal{"S2", load.at, "is read when a part of it is overwritten"};
  }
  if (executions(load, facts) != executions(lead, facts) &&
      executions(load, facts) != facts.taken) {
    return Refusal{"S2", load.at, "is read once more than written"};
  }
  (before ? row.loads_before : row.loads_behind).push_back(load);
  return std::nullopt;
}

// Stores that begin one after the other where the one before ends, until the next iteration's.
std::optional<Row> Finder::tile(Loop* loop, std::vector<Access> group) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const LoopFacts& facts = this->facts(loop);
  const auto refuse = [&](const Refusal& refusal) {
    refused_.emplace_back(loop, refusal);
    return std::nullopt;
  };
  const SCEVAddRecExpr* any = recurrence(loop, group.front());
  const auto begin_of = [&](const Access& store) {
    return *distance(evolution, any, recurrence(loop, store));
  };
  std::stable_sort(group.begin(), group.end(), [&](const Access& one, const Access& two) {
    return begin_of(one) < begin_of(two);
  });
  const SCEVAddRecExpr* lowest = recurrence(loop, group.front());
  Row row;
  row.step = *constant_step(lowest);
  const int64_t step = std::abs(row.step);
  int64_t end = begin_of(group.front());
  const int64_t limit = end + step;
  bool whole = true;
  for (const Access& store : group) {
    whole &= begin_of(store) <= end;
    end = std::max(end, begin_of(store) + static_cast<int64_t>(store.constant_bytes()));
  }
  const Instruction* at = group.front().at;
  if (!whole || end != limit) {
    return refuse({"S1", at,
                   "stores do not cover all of the " + std::to_string(step) +
                       " bytes in an iteration, once"});
  }
  row.stores = std::move(group);
  const SCEV* times = executions(row.stores.front(), facts);
  row.first = lowest->getStart();
  if (row.step < 0) {
    const SCEV* back = evolution.getMinusSCEV(times, word(1));
    const SCEV* steps = evolution.getConstant(times->getType(), static_cast<uint64_t>(row.step));
    row.first = evolution.getAddExpr(row.first, evolution.getMulExpr(back, steps));
  }
  row.bytes = evolution.getMulExpr(times, word(static_cast<uint64_t>(step)));
  const auto* base = llvm::dyn_cast<llvm::SCEVUnknown>(evolution.getPointerBase(row.first));
  const Instruction* where = loop->getLoopPreheader()->getTerminator();
  if (base == nullptr || !is_known(analyses_, row.first, where) ||
      !is_known(analyses_, row.bytes, where)) {
    return refuse({"S1", at, "where it begins is not known before the loop"});
  }
  row.base = base->getValue();
  const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(row.bytes);
  if (constant != nullptr && constant->getAPInt().ult(rows_bytes_min)) {
    return refuse({"S1", at, "the row is short"});
  }
  for (const Access& load : facts.accesses) {
    if (load.writes || load.constant_bytes() == 0) continue;
    if (auto refusal = place_load(loop, row, load)) return refuse(*refusal);
  }
  return row;
}

}  // namespace perdure::ipv
