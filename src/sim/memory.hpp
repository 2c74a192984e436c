// Memory: which page is in a frame of which memory, whether it is dirty, and what it all amounts
// to.
//
// Invariants: resident pages and free frames of a memory add up to its capacity; a page is in at
// most one frame; accesses are counted where the page is. A policy says which page leaves and where
// one comes to; it can not miscount.
// Threads: one. Failure: a policy that breaks the rules is a bug, and an assertion.
// Memory: 2 bytes for each page.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/assert.hpp"
#include "sim/counters.hpp"

namespace perdure::sim {

using PageId = std::uint32_t;

// Whether a page that is touched for the first time has a good replica in swap already (a file that
// is mapped) or not (memory that the program allocated).
enum class FirstTouch { dirty, clean };

class Memory {
 public:
  Memory(std::uint64_t dram_frames, std::uint64_t mram_frames, FirstTouch first_touch)
      : frames_{dram_frames, mram_frames}, free_(frames_), first_touch_(first_touch) {}

  std::uint64_t frames(Place place) const { return frames_[index_of(place)]; }
  std::uint64_t frames() const { return frames_[0] + frames_[1]; }
  std::uint64_t free(Place place) const { return free_[index_of(place)]; }
  bool resident(PageId page) const { return (state_[page] & resident_bit) != 0; }
  Place place(PageId page) const { return static_cast<Place>(state_[page] & place_bit); }

  // Takes a resident page out; its frame is free. The place that it was at.
  Place evict(PageId page) {
    const State state = state_[page];
    PERDURE_ASSERT((state & resident_bit) != 0);
    const auto from = static_cast<Place>(state & place_bit);
    PlaceCounters& counters = counters_[from];
    const std::uint64_t dirty = (state & dirty_bit) / dirty_bit;
    counters.page_outs += dirty;
    counters.clean_evictions += 1 - dirty;
    state_[page] = known_bit;
    ++free_[index_of(from)];
    return from;
  }
  // Moves a resident page to a free frame of the other memory.
  void move(PageId page, Place to);
  // Exchanges the frames of two resident pages in different memories.
  void exchange(PageId one, PageId other);

  // For the loop in run.hpp:
  void grow(std::uint32_t pages) { state_.resize(pages, 0); }
  void load(PageId page, Place to) {
    const State state = state_[page];
    PERDURE_ASSERT((state & resident_bit) == 0 && free(to) > 0);
    --free_[index_of(to)];
    PlaceCounters& counters = counters_[to];
    const std::uint64_t known = (state & known_bit) / known_bit;
    counters.page_ins += known;
    counters.first_touches += 1 - known;
    const State dirty = known == 0 && first_touch_ == FirstTouch::dirty ? dirty_bit : 0;
    state_[page] = static_cast<State>(known_bit | resident_bit | dirty | index_of(to));
  }
  void access(PageId page, std::uint32_t reads, std::uint32_t writes) {
    State& state = state_[page];
    PlaceCounters& counters = counters_.at[state & place_bit];
    counters.reads += reads;
    counters.writes += writes;
    state = static_cast<State>(state | (writes != 0 ? dirty_bit : 0));
  }

  const Counters& counters() const { return counters_; }
  std::uint64_t resident_pages() const;

 private:
  // Not a byte: a store to one might be to anything, as far as the compiler knows.
  using State = std::uint16_t;
  static constexpr State place_bit = 1;
  static constexpr State resident_bit = 2;
  static constexpr State dirty_bit = 4;
  static constexpr State known_bit = 8;  // was resident before

  std::array<std::uint64_t, places> frames_;
  std::array<std::uint64_t, places> free_;
  FirstTouch first_touch_;
  Counters counters_;
  std::vector<State> state_;
};

}  // namespace perdure::sim
