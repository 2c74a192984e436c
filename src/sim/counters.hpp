// SPDX-License-Identifier: BSD-3-Clause
//
// Counters: everything that a replay leaves behind. Time and energy are linear in them
// (account.hpp), so another device needs no second replay. Values.
#pragma once

#include <array>
#include <cstdint>

namespace perdure::sim {

enum class Place : std::uint8_t { dram = 0, mram = 1 };
inline constexpr std::size_t places = 2;

constexpr std::size_t index_of(Place place) {
  return static_cast<std::size_t>(place);
}

// What happened in the frames of one memory.
struct PlaceCounters {
  std::uint64_t reads = 0;  // of lines, by the program
  std::uint64_t writes = 0;
  std::uint64_t page_ins = 0;         // pages read back from swap into it
  std::uint64_t first_touches = 0;    // pages that came into it for the first time
  std::uint64_t page_outs = 0;        // dirty pages evicted: written to swap
  std::uint64_t clean_evictions = 0;  // pages evicted whose replica in swap was good
  std::uint64_t moved_in = 0;         // pages that came from the other memory
  bool operator==(const PlaceCounters&) const = default;
};

struct Counters {
  std::array<PlaceCounters, places> at = {};
  PlaceCounters& operator[](Place place) { return at[index_of(place)]; }
  const PlaceCounters& operator[](Place place) const { return at[index_of(place)]; }

  std::uint64_t sum(std::uint64_t PlaceCounters::* counter) const {
    return at[0].*counter + at[1].*counter;
  }
  std::uint64_t accesses() const {
    return sum(&PlaceCounters::reads) + sum(&PlaceCounters::writes);
  }
  std::uint64_t faults() const {
    return sum(&PlaceCounters::page_ins) + sum(&PlaceCounters::first_touches);
  }
  bool operator==(const Counters&) const = default;
};

}  // namespace perdure::sim
