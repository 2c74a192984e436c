// SPDX-License-Identifier: BSD-3-Clause
#include "sim/memory.hpp"

namespace perdure::sim {

void Memory::move(PageId page, Place to) {
  PERDURE_ASSERT(resident(page) && place(page) != to && free(to) > 0);
  ++room_[index_of(place(page))];
  --room_[index_of(to)];
  state_[page] ^= place_bit;
  ++moved_in_[index_of(to)];
}

void Memory::exchange(PageId one, PageId other) {
  PERDURE_ASSERT(resident(one) && resident(other) && place(one) != place(other));
  for (const PageId page : {one, other}) {
    state_[page] ^= place_bit;
    ++moved_in_[index_of(place(page))];
  }
}

Counters Memory::counters() const {
  Counters counters;
  for (std::size_t i = 0; i < places; ++i) {
    PlaceCounters& at = counters.at[i];
    at.reads = reads_[i];
    at.writes = writes_[i];
    at.page_ins = loads_[i] - first_touches_[i];
    at.first_touches = first_touches_[i];
    at.page_outs = page_outs_[i];
    at.clean_evictions = evictions_[i] - page_outs_[i];
    at.moved_in = moved_in_[i];
  }
  return counters;
}

std::uint64_t Memory::resident_pages() const {
  std::uint64_t count = 0;
  for (const State state : state_) count += (state & resident_bit) != 0 ? 1U : 0U;
  return count;
}

}  // namespace perdure::sim
