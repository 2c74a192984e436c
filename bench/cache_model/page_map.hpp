// SPDX-License-Identifier: BSD-3-Clause
//
// Page map: which memory an address shows. Bytes of a file that is mapped shared are the same
// memory at whatever address they are seen; all other memory is identified by its address.
//
// Memory is a number: the address, or, of the n-th file, n · 2^48 + the offset in it.
// Invariant: `shown_` is in the order of addresses, and its ranges are disjoint. Threads: one at a
// time. Failure: std::bad_alloc.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perdure::cache_model {

class PageMap {
 public:
  static constexpr unsigned page_shift = 12;

  PageMap() { forget(); }

  // [begin, end), whole pages, shows `memory` and what follows it.
  void show(std::uint64_t begin, std::uint64_t end, std::uint64_t memory) {
    clear(begin, end);
    const Range range{begin, end, memory};
    shown_.insert(std::upper_bound(shown_.begin(), shown_.end(), range, before), range);
  }

  // It shows memory of its own.
  void clear(std::uint64_t begin, std::uint64_t end) {
    std::vector<Range> kept;
    kept.reserve(shown_.size() + 2);
    for (const Range& range : shown_) {
      if (range.begin < begin)
        kept.push_back({range.begin, std::min(range.end, begin), range.memory});
      if (range.end > end) {
        const std::uint64_t from = std::max(range.begin, end);
        kept.push_back({from, range.end, range.memory + (from - range.begin)});
      }
    }
    shown_.swap(kept);
    forget();
  }

  std::uint64_t memory_at(std::uint64_t address) {
    const std::uint64_t page = address >> page_shift;
    Known& known = known_[page % known_.size()];
    if (known.page != page) known = {page, look_up(page << page_shift)};
    return known.memory + (address & ((std::uint64_t{1} << page_shift) - 1));
  }

  static std::uint64_t file_memory(std::size_t number, std::uint64_t offset) {
    return (std::uint64_t{number} + 1) << file_shift | offset;
  }
  static bool is_of_a_file(std::uint64_t memory) { return memory >> file_shift != 0; }

 private:
  static constexpr unsigned file_shift = 48;

  struct Range {
    std::uint64_t begin;
    std::uint64_t end;
    std::uint64_t memory;
  };
  struct Known {
    std::uint64_t page = ~std::uint64_t{0};
    std::uint64_t memory = 0;
  };
  static bool before(const Range& a, const Range& b) { return a.begin < b.begin; }

  void forget() { known_.fill({}); }
  std::uint64_t look_up(std::uint64_t address) const {
    auto next = std::upper_bound(shown_.begin(), shown_.end(), Range{address, 0, 0}, before);
    if (next == shown_.begin()) return address;
    const Range& range = *std::prev(next);
    return address < range.end ? range.memory + (address - range.begin) : address;
  }

  std::vector<Range> shown_;
  std::array<Known, 8192> known_;  // pages that were looked up
};

}  // namespace perdure::cache_model
