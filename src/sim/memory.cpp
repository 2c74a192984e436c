#include "sim/memory.hpp"

namespace perdure::sim {

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
  for (const State state : state_) count += (state & resident_bit) != 0 ? 1U : 0U;
  return count;
}

}  // namespace perdure::sim
