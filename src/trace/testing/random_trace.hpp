// SPDX-License-Identifier: BSD-3-Clause
//
// Random traces for tests: accesses to pages with the shapes that matter (uniform, skewed, loops,
// phases), from a seed that a failing test prints.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "trace/record.hpp"

namespace perdure::trace {

// Page numbers, not dense; reads and writes of single accesses.
struct RandomAccess {
  std::uint64_t page = 0;
  bool is_write = false;
};

inline std::vector<RandomAccess> random_accesses(std::uint64_t seed, std::size_t count,
                                                 std::uint32_t pages) {
  std::mt19937_64 random(seed);
  const auto below = [&](std::uint64_t bound) { return random() % bound; };
  std::vector<RandomAccess> accesses;
  const std::uint64_t write_share = below(100);
  while (accesses.size() < count) {
    const std::uint64_t kind = below(4), length = 1 + below(count / 2 + 1);
    const std::uint64_t base = below(pages), span = 1 + below(pages);
    for (std::uint64_t i = 0; i < length && accesses.size() < count; ++i) {
      std::uint64_t page = 0;
      if (kind == 0) page = below(pages);
      if (kind == 1) page = below(1 + below(1 + below(pages)));   // small numbers are hot
      if (kind == 2) page = (base + i % span) % pages;            // a loop
      if (kind == 3) page = (base + i / (1 + span % 7)) % pages;  // a stream, several each page
      accesses.push_back({page, below(100) < write_share});
    }
  }
  return accesses;
}

// The same as records of one access with dense ids.
inline std::vector<Record> dense_records(const std::vector<RandomAccess>& accesses) {
  std::vector<Record> records;
  std::vector<std::uint64_t> known;
  for (const RandomAccess& access : accesses) {
    std::uint32_t id = 0;
    while (id < known.size() && known[id] != access.page) ++id;
    if (id == known.size()) known.push_back(access.page);
    records.push_back({id, access.is_write ? 0U : 1U, access.is_write ? 1U : 0U});
  }
  return records;
}

}  // namespace perdure::trace
