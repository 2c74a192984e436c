#include "sim/memory.hpp"

namespace perdure::sim {

void Memory::load(PageId page, Place to) {
  PERDURE_ASSERT(!resident(page) && free(to) > 0);
  --free_[index_of(to)];
  std::uint8_t& state = state_[page];
  PlaceCounters& counters = counters_[to];
  if ((state & known_bit) != 0) {
    ++counters.page_ins;
    state = known_bit | resident_bit;
  } else {
    ++counters.first_touches;
    state = known_bit | resident_bit | (first_touch_ == FirstTouch::dirty ? dirty_bit : 0U);
  }
  state = static_cast<std::uint8_t>(state | index_of(to));
}

Place Memory::evict(PageId page) {
  PERDURE_ASSERT(resident(page));
  const Place from = place(page);
  const bool dirty = (state_[page] & dirty_bit) != 0;
  ++(dirty ? counters_[from].page_outs : counters_[from].clean_evictions);
  state_[page] = known_bit;
  ++free_[index_of(from)];
  return from;
}

void Memory::move(PageId page, Place to) {
  PERDURE_ASSERT(resident(page) && place(page) != to && free(to) > 0);
  ++free_[index_of(place(page))];
  --free_[index_of(to)];
  state_[page] ^= place_bit;
  ++counters_[to].moved_in;
}

void Memory::exchange(PageId one, PageId other) {
  PERDURE_ASSERT(resident(one) && resident(other) && place(one) != place(other));
  for (const PageId page : {one, other}) {
    state_[page] ^= place_bit;
    ++counters_[place(page)].moved_in;
  }
}

std::uint64_t Memory::resident_pages() const {
  std::uint64_t count = 0;
  for (const std::uint8_t state : state_) count += (state & resident_bit) != 0 ? 1U : 0U;
  return count;
}

}  // namespace perdure::sim
