// SPDX-License-Identifier: BSD-3-Clause
//
// Which bytes a group of stores of an innermost loop makes a row of (S1), and what its loads of
// them may read (S2).
//
// A row whose iterations overwrite all their bytes needs nothing else. Of others the second version
// of the loop copies in front of each iteration what may stay as it was (ipv_version.hpp), which is
// therefore read in the new copy.
#include <algorithm>

#include "ipv_find.hpp"

namespace perdure::ipv {

using llvm::Instruction;
using llvm::Loop;
using llvm::SCEV;
using llvm::SCEVAddRecExpr;

namespace {

// Less is as well copied when the object is stored to.
constexpr int64_t covered_part_min = 8;

}  // namespace

// The stores by their place, from the lowest one's first byte.
struct Finder::Tiles {
  struct Tile {
    int64_t begin;
    int64_t end;
    bool is_certain;  // in each iteration
    Access store;
  };
  std::vector<Tile> list;
  const SCEVAddRecExpr* lowest = nullptr;
  int64_t step = 0;
  int64_t end = 0;

  // What of [0, end) is stored to; for certain.
  std::vector<bool> stored(bool for_certain) const {
    std::vector<bool> bytes(static_cast<size_t>(end));
    for (const Tile& tile : list) {
      if (for_certain && !tile.is_certain) continue;
      std::fill(bytes.begin() + tile.begin, bytes.begin() + tile.end, true);
    }
    return bytes;
  }
};

bool Finder::is_in_each(const Loop* loop, const Instruction* at) const {
  return analyses_.dominators.dominates(at->getParent(), loop->getLoopLatch());
}

Finder::Tiles Finder::sort_tiles(Loop* loop, LoopFacts& facts, const std::vector<Access>& group) {
  Tiles tiles;
  const SCEVAddRecExpr* lead = recurrence(facts, loop, group.front());
  for (const Access& store : group) {
    const int64_t begin = *distance(analyses_.evolution, lead, recurrence(facts, loop, store));
    tiles.list.push_back({begin, begin + static_cast<int64_t>(store.constant_bytes()),
                          is_in_each(loop, store.at), store});
  }
  std::stable_sort(tiles.list.begin(), tiles.list.end(),
                   [](const auto& one, const auto& two) { return one.begin < two.begin; });
  const int64_t low = tiles.list.front().begin;
  for (Tiles::Tile& tile : tiles.list) {
    tile.begin -= low;
    tile.end -= low;
    tiles.end = std::max(tiles.end, tile.end);
  }
  tiles.lowest = recurrence(facts, loop, tiles.list.front().store);
  tiles.step = *constant_step(tiles.lowest, facts, analyses_.evolution);
  return tiles;
}

// Loads of the bytes around the stores, of the nearest first, as long as it is one iteration's.
void Finder::widen_for_loads(Loop* loop, LoopFacts& facts, const Tiles& tiles, Row& row) {
  const int64_t step = std::abs(tiles.step);
  int64_t begin = 0;
  int64_t end = tiles.end;
  for (;;) {
    int64_t least = step + 1;
    int64_t new_begin = begin;
    int64_t new_end = end;
    for (const Access& load : facts.accesses) {
      if (load.writes || load.constant_bytes() == 0) continue;
      const SCEVAddRecExpr* address = recurrence(facts, loop, load);
      if (address == nullptr || address->getStepRecurrence(analyses_.evolution) !=
                                    tiles.lowest->getStepRecurrence(analyses_.evolution)) {
        continue;
      }
      const auto from = distance(analyses_.evolution, tiles.lowest, address);
      if (!from || std::abs(*from) > step || load.constant_bytes() > uint64_t(step)) continue;
      const int64_t low = std::min(begin, *from);
      const int64_t high = std::max(end, *from + static_cast<int64_t>(load.constant_bytes()));
      const int64_t more = (begin - low) + (high - end);
      if (more == 0 || high - low > step || more >= least) continue;
      least = more;
      new_begin = low;
      new_end = high;
    }
    if (new_begin == begin && new_end == end) break;
    begin = new_begin;
    end = new_end;
  }
  row.lead = -begin;
  row.hull = end - begin;
}

// Where the bytes of an iteration begin and end, and which of them are copied.
std::optional<Refusal> Finder::lay_out(Loop* loop, LoopFacts& facts, const Tiles& tiles, Row& row) {
  const int64_t step = std::abs(tiles.step);
  const Instruction* at = tiles.list.front().store.at;
  const auto refuse = [&](const std::string& why) { return Refusal{"S1", at, why}; };
  const std::string bytes = std::to_string(step) + " bytes in an iteration";
  if (tiles.end > step) return refuse("stores overlap those of another one of the " + bytes);
  const std::vector<bool> certain = tiles.stored(true);
  row.hull = tiles.end;
  if (tiles.end == step && llvm::all_of(certain, [](bool is) { return is; })) return std::nullopt;
  const std::vector<bool> stored = tiles.stored(false);
  const auto covered = static_cast<int64_t>(std::count(stored.begin(), stored.end(), true));
  if (step > element_bytes_max || covered * covered_part_min < step) {
    return refuse("stores cover " + std::to_string(covered) + " of the " + bytes);
  }
  if (facts.exiting != loop->getLoopLatch()) {
    return refuse("stores do not cover all " + bytes + ", of a loop that ends within one");
  }
  widen_for_loads(loop, facts, tiles, row);
  const auto is_copied = [&](int64_t place) {
    const int64_t of_store = place - row.lead;
    return of_store < 0 || of_store >= tiles.end || !certain[static_cast<size_t>(of_store)];
  };
  for (int64_t begin = 0; begin < step;) {
    int64_t end = begin;
    const int64_t limit = begin < row.hull ? row.hull : step;
    while (end < limit && is_copied(end)) ++end;
    if (end != begin) row.copied.push_back({begin, end});
    begin = std::max(end, begin + 1);
  }
  return std::nullopt;
}

std::optional<Refusal> Finder::place_load(Loop* loop, LoopFacts& facts, Row& row,
                                          const Access& load) {
  const Access& lead = row.stores.front();  // the lowest
  const SCEV* lead_address = recurrence(facts, loop, lead);
  const auto bytes = static_cast<int64_t>(load.constant_bytes());
  const SCEVAddRecExpr* address = recurrence(facts, loop, load);
  if (address == nullptr) return std::nullopt;
  const auto of_lead = distance(analyses_.evolution, lead_address, address);
  if (!of_lead) return std::nullopt;
  const int64_t from = *of_lead + row.lead;
  if (from < 0 || from + bytes > row.hull) return std::nullopt;
  int64_t copied = 0;  // of its bytes: what was copied is read in the new copy
  for (const Row::Part& part : row.copied) {
    copied += std::max<int64_t>(0, std::min(part.end, from + bytes) - std::max(part.begin, from));
  }
  bool before = copied == 0;  // wherever the stores are
  bool covered_behind = copied == bytes;
  for (const Access& store : row.stores) {
    const int64_t at =
        *distance(analyses_.evolution, lead_address, recurrence(facts, loop, store)) + row.lead;
    const auto width = static_cast<int64_t>(store.constant_bytes());
    if (at >= from + bytes || at + width <= from) continue;
    const bool certain = is_in_each(loop, store.at);
    const bool behind = precedes(analyses_.dominators, store.at, load.at);
    before &= certain ? !behind : precedes(analyses_.dominators, load.at, store.at);
    covered_behind |= certain && behind && at <= from && at + width >= from + bytes;
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

std::optional<Refusal> Finder::place_loads(Loop* loop, LoopFacts& facts, Row& row) {
  for (const Access& load : facts.accesses) {
    if (load.writes || load.constant_bytes() == 0) continue;
    if (auto refusal = place_load(loop, facts, row, load)) return refusal;
  }
  return std::nullopt;
}

std::optional<Row> Finder::tile(Loop* loop, LoopFacts& facts, std::vector<Access> group) {
  llvm::ScalarEvolution& evolution = analyses_.evolution;
  const Tiles tiles = sort_tiles(loop, facts, group);
  const auto refuse = [&](const Refusal& refusal) {
    refused_.emplace_back(loop, refusal);
    return std::nullopt;
  };
  Row row;
  row.step = tiles.step;
  for (const Tiles::Tile& tile : tiles.list) row.stores.push_back(tile.store);
  if (auto refusal = lay_out(loop, facts, tiles, row)) return refuse(*refusal);
  const auto step = static_cast<uint64_t>(std::abs(row.step));
  const SCEV* times = executions(row.stores.front(), facts);
  const SCEV* back = evolution.getMinusSCEV(times, word(1));
  row.first = tiles.lowest->getStart();
  if (row.step < 0) {
    const SCEV* steps = evolution.getConstant(times->getType(), static_cast<uint64_t>(row.step));
    row.first = evolution.getAddExpr(row.first, evolution.getMulExpr(back, steps));
  }
  if (row.lead != 0) {
    const auto lead = static_cast<uint64_t>(-row.lead);
    row.first = evolution.getAddExpr(row.first, evolution.getConstant(times->getType(), lead));
  }
  row.bytes = row.copied.empty() ? evolution.getMulExpr(times, word(step))
                                 : evolution.getAddExpr(evolution.getMulExpr(back, word(step)),
                                                        word(static_cast<uint64_t>(row.hull)));
  const auto* base = llvm::dyn_cast<llvm::SCEVUnknown>(evolution.getPointerBase(row.first));
  const Instruction* where = loop->getLoopPreheader()->getTerminator();
  const Instruction* at = row.stores.front().at;
  if (base == nullptr || !is_safe(row.first, where) || !is_safe(row.bytes, where)) {
    return refuse({"S1", at, "where it begins is not known before the loop"});
  }
  row.base = base->getValue();
  const auto* constant = llvm::dyn_cast<llvm::SCEVConstant>(row.bytes);
  if (constant != nullptr && constant->getAPInt().ult(rows_bytes_min)) {
    return refuse({"S1", at, "the row is short"});
  }
  if (auto refusal = place_loads(loop, facts, row)) return refuse(*refusal);
  return row;
}

}  // namespace perdure::ipv
