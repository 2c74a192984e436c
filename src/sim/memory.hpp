// Memory: which page is in a frame of which memory, whether it is dirty, and what it all amounts
// to.
//
// Invariants: resident pages and free frames of a memory add up to its capacity; a page is in at
// most one frame; accesses are counted where the page is. A policy says which page leaves and where
// one comes to; it can not miscount.
// Threads: one. Failure: a policy that breaks the rules is a bug, and an assertion.
// Memory: 1 byte for each page.
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
  Place evict(PageId page);
  // Moves a resident page to a free frame of the other memory.
  void move(PageId page, Place to);
  // Exchanges the frames of two resident pages in different memories.
  void exchange(PageId one, PageId other);

  // For the loop in run.hpp:
  void grow(std::uint32_t pages) { state_.resize(pages, 0); }
  void load(PageId page, Place to);
  void access(PageId page, std::uint32_t reads, std::uint32_t writes) {
    std::uint8_t& state = state_[page];
    PlaceCounters& counters = counters_.at[state & place_bit];
    counters.reads += reads;
    counters.writes += writes;
    if (writes != 0) state |= dirty_bit;
  }

  const Counters& counters() const { return counters_; }
  std::uint64_t resident_pages() const;

 private:
  static constexpr std::uint8_t place_bit = 1;
  static constexpr std::uint8_t resident_bit = 2;
  static constexpr std::uint8_t dirty_bit = 4;
  static constexpr std::uint8_t known_bit = 8;  // was resident before

  std::array<std::uint64_t, places> frames_;
  std::array<std::uint64_t, places> free_;
  FirstTouch first_touch_;
  Counters counters_;
  std::vector<std::uint8_t> state_;
};

}  // namespace perdure::sim
