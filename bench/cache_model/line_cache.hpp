// SPDX-License-Identifier: BSD-3-Clause
//
// Line cache: which lines of 64 bytes a cache holds, and which of them were stored to and not
// written back; sets of some ways, replaced by LRU. Pure.
//
// Invariant: a set's ways are in the order of their last use, the newest first, empty ones last.
// Threads: one at a time. Failure: none; fits() says which shapes there are.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace perdure::cache_model {

constexpr unsigned line_shift = 6;

class LineCache {
 public:
  static constexpr std::uint64_t empty = ~std::uint64_t{0};

  struct Touched {
    bool hit;               // the line was there
    std::uint64_t put_out;  // a dirty line that had to go for it; empty: none
  };

  // The sets are a power of two.
  static bool fits(std::uint64_t size_bytes, std::uint64_t ways) {
    const std::uint64_t way_bytes = ways << line_shift;
    return ways != 0 && ways <= 1024 && size_bytes % way_bytes == 0 &&
           size_bytes <= std::uint64_t{1} << 36U && std::has_single_bit(size_bytes / way_bytes);
  }

  LineCache(std::uint64_t size_bytes, std::uint64_t ways)
      : ways_(ways),
        set_mask_((size_bytes >> line_shift) / ways - 1),
        entries_(size_bytes >> line_shift, empty) {}

  // Afterwards it is there, and dirty if it was, or is stored to.
  Touched touch(std::uint64_t line, bool store) {
    std::uint64_t* const set = set_of(line);
    if (line_in(set[0]) == line) {
      set[0] = entry(line, store || is_dirty(set[0]));
      return {true, empty};
    }
    std::uint64_t* const end = set + ways_;
    std::uint64_t* const at = find(set + 1, end, line);
    const bool hit = at != end;
    const std::uint64_t gone = hit ? *at : end[-1];
    std::move_backward(set, hit ? at : end - 1, hit ? at + 1 : end);
    set[0] = entry(line, store || (hit && is_dirty(gone)));
    return {hit, !hit && is_dirty(gone) ? line_in(gone) : empty};
  }

  // A level above puts the line out. False: it is not here.
  bool soil(std::uint64_t line) {
    std::uint64_t* const at = where(line);
    if (at == nullptr) return false;
    *at = entry(line, true);
    return true;
  }
  // False: it is not here, or was clean.
  bool clean(std::uint64_t line) {
    std::uint64_t* const at = where(line);
    if (at == nullptr || !is_dirty(*at)) return false;
    *at = entry(line, false);
    return true;
  }

  // It goes, and what it holds is not wanted.
  void evict(std::uint64_t line) {
    std::uint64_t* const set = set_of(line);
    std::uint64_t* const end = set + ways_;
    std::uint64_t* const at = find(set, end, line);
    if (at == end) return;
    std::move(at + 1, end, at);
    end[-1] = empty;
  }

 private:
  static constexpr std::uint64_t dirty_bit = std::uint64_t{1} << 63U;  // of no line

  static std::uint64_t entry(std::uint64_t line, bool dirty) {
    return dirty ? line | dirty_bit : line;
  }
  static bool is_dirty(std::uint64_t entry) { return entry != empty && (entry & dirty_bit) != 0; }
  static std::uint64_t line_in(std::uint64_t entry) { return entry & ~dirty_bit; }
  static std::uint64_t* find(std::uint64_t* begin, std::uint64_t* end, std::uint64_t line) {
    return std::find_if(begin, end, [line](std::uint64_t entry) { return line_in(entry) == line; });
  }

  std::uint64_t* where(std::uint64_t line) {
    std::uint64_t* const set = set_of(line);
    std::uint64_t* const at = find(set, set + ways_, line);
    return at == set + ways_ ? nullptr : at;
  }

  std::uint64_t* set_of(std::uint64_t line) { return &entries_[(line & set_mask_) * ways_]; }

  std::uint64_t ways_;
  std::uint64_t set_mask_;
  std::vector<std::uint64_t> entries_;  // set by set
};

}  // namespace perdure::cache_model
