// SPDX-License-Identifier: BSD-3-Clause
//
// Memory: which page is in a frame of which memory, whether it is dirty, and what it all amounts
// to.
//
// Invariants: resident pages and free frames of a memory add up to its capacity; a page is in at
// most one frame; accesses are counted where the page is. A policy says which page leaves and where
// one goes; it cannot miscount.
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

// Accesses that are not in the counters yet: sums that stay in registers.
struct Accesses {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::uint64_t mram_reads = 0;  // of them
  std::uint64_t mram_writes = 0;
};

class Memory {
 public:
  Memory(std::uint64_t dram_frames, std::uint64_t mram_frames, FirstTouch first_touch)
      : frames_{dram_frames, mram_frames}, first_touch_(first_touch) {}

  std::uint64_t frames(Place place) const { return frames_[index_of(place)]; }
  std::uint64_t frames() const { return frames_[0] + frames_[1]; }
  std::uint64_t free(Place place) const {
    const std::size_t at = index_of(place);
    return room_[at] + evictions_[at] - loads_[at];
  }
  // Whether a frame of any memory is free.
  bool any_free() const {
    return frames() + evictions_[0] + evictions_[1] != loads_[0] + loads_[1];
  }
  bool resident(PageId page) const { return (state_[page] & resident_bit) != 0; }
  Place place(PageId page) const { return static_cast<Place>(state_[page] & place_bit); }

  // Takes a resident page out; its frame is free. The place that it was at.
  Place evict(PageId page) {
    const State state = state_[page];
    PERDURE_ASSERT((state & resident_bit) != 0);
    const auto from = static_cast<Place>(state & place_bit);
    ++evictions_[index_of(from)];
    page_outs_[index_of(from)] += (state & dirty_bit) / dirty_bit;
    state_[page] = known_bit;
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
    ++loads_[index_of(to)];
    State dirty = 0;
    if ((state & known_bit) == 0) {
      ++first_touches_[index_of(to)];
      if (first_touch_ == FirstTouch::dirty) dirty = dirty_bit;
    }
    state_[page] = static_cast<State>(known_bit | resident_bit | dirty | index_of(to));
  }
  // Adds the accesses to `accesses`, for count().
  void access(PageId page, std::uint32_t reads, std::uint32_t writes, Accesses& accesses) {
    const State state = state_[page];
    state_[page] = static_cast<State>(state | (writes != 0 ? dirty_bit : 0));
    const std::uint64_t in_mram = std::uint64_t{0} - (state & place_bit);
    accesses.reads += reads;
    accesses.writes += writes;
    accesses.mram_reads += reads & in_mram;
    accesses.mram_writes += writes & in_mram;
  }
  // Moves `accesses` to the counters.
  void count(Accesses& accesses) {
    reads_[0] += accesses.reads - accesses.mram_reads;
    writes_[0] += accesses.writes - accesses.mram_writes;
    reads_[1] += accesses.mram_reads;
    writes_[1] += accesses.mram_writes;
    accesses = {};
  }

  // Without the accesses that count() was not given yet.
  Counters counters() const;
  std::uint64_t resident_pages() const;

 private:
  // Not a byte: a store to one might be to anything, as far as the compiler knows.
  using State = std::uint16_t;
  static constexpr State place_bit = 1;
  static constexpr State resident_bit = 2;
  static constexpr State dirty_bit = 4;
  static constexpr State known_bit = 8;  // was resident before

  using Counts = std::array<std::uint64_t, places>;

  Counts frames_;
  FirstTouch first_touch_;
  std::vector<State> state_;
  Counts reads_ = {};
  Counts writes_ = {};
  // These only grow. A number of free frames, taken and given back by each fault, would be a chain
  // of loads and stores through all of them.
  Counts loads_ = {};
  Counts evictions_ = {};
  Counts first_touches_ = {};  // of the loads
  Counts page_outs_ = {};      // of the evictions
  Counts moved_in_ = {};
  Counts room_ = frames_;  // frames, and what moved out, less what moved in
};

}  // namespace perdure::sim
