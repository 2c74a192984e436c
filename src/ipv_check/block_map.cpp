// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/block_map.hpp"

#include <limits>

namespace perdure::ipv_check {

void BlockMap::insert(std::uintptr_t begin, std::uintptr_t end, Tracked& tracked) {
  Block& block = blocks_[begin];
  block.begin = begin;
  block.end = end;
  block.tracked = &tracked;
  ++changes_;
}

BlockMap::Place BlockMap::first_overlap(std::uintptr_t begin) {
  auto place = blocks_.upper_bound(begin);
  if (place != blocks_.begin() && std::prev(place)->second.end > begin) --place;
  return place;
}

// The place after it; what sticks out of [begin, end) stays.
BlockMap::Place BlockMap::cut_out(Place place, std::uintptr_t begin, std::uintptr_t end) {
  Block& block = place->second;
  const std::uintptr_t block_begin = block.begin, block_end = block.end;
  Tracked& tracked = *block.tracked;
  leaves_(block);
  place = blocks_.erase(place);
  if (block_begin < begin) insert(block_begin, begin, tracked);
  if (block_end > end) insert(end, block_end, tracked);
  ++changes_;
  return place;
}

void BlockMap::put(std::uintptr_t begin, std::uintptr_t end, Tracked& tracked) {
  auto place = first_overlap(begin);
  while (place != blocks_.end() && place->second.begin < end) place = cut_out(place, begin, end);
  insert(begin, end, tracked);
}

void BlockMap::take(std::uintptr_t begin, std::uintptr_t end, TrackedKind kind) {
  auto place = first_overlap(begin);
  while (place != blocks_.end() && place->second.begin < end) {
    place = place->second.tracked->kind == kind ? cut_out(place, begin, end) : std::next(place);
  }
}

BlockMap::Found BlockMap::find(std::uintptr_t address) {
  const auto next = blocks_.upper_bound(address);
  Found found{0, next == blocks_.end() ? std::numeric_limits<std::uintptr_t>::max() : next->first,
              nullptr};
  if (next == blocks_.begin()) return found;
  Block& before = std::prev(next)->second;
  if (address < before.end) return {before.begin, before.end, &before};
  found.begin = before.end;
  return found;
}

}  // namespace perdure::ipv_check
