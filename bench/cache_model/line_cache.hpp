// SPDX-License-Identifier: BSD-3-Clause
//
// Line cache: which lines of 64 bytes a cache holds; sets of some ways, replaced by LRU. Pure.
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

  // The sets are a power of two.
  static bool fits(std::uint64_t size_bytes, std::uint64_t ways) {
    const std::uint64_t way_bytes = ways << line_shift;
    return ways != 0 && ways <= 1024 && size_bytes % way_bytes == 0 &&
           size_bytes <= std::uint64_t{1} << 36U && std::has_single_bit(size_bytes / way_bytes);
  }

  LineCache(std::uint64_t size_bytes, std::uint64_t ways)
      : ways_(ways),
        set_mask_((size_bytes >> line_shift) / ways - 1),
        lines_(size_bytes >> line_shift, empty) {}

  // True: it was there. Afterwards it is.
  bool touch(std::uint64_t line) {
    std::uint64_t* const set = set_of(line);
    if (set[0] == line) return true;
    std::uint64_t* const end = set + ways_;
    std::uint64_t* const at = std::find(set + 1, end, line);
    const bool hit = at != end;
    std::move_backward(set, hit ? at : end - 1, hit ? at + 1 : end);
    set[0] = line;
    return hit;
  }

  void evict(std::uint64_t line) {
    std::uint64_t* const set = set_of(line);
    std::uint64_t* const end = set + ways_;
    std::uint64_t* const at = std::find(set, end, line);
    if (at == end) return;
    std::move(at + 1, end, at);
    end[-1] = empty;
  }

 private:
  std::uint64_t* set_of(std::uint64_t line) { return &lines_[(line & set_mask_) * ways_]; }

  std::uint64_t ways_;
  std::uint64_t set_mask_;
  std::vector<std::uint64_t> lines_;  // set by set
};

}  // namespace perdure::cache_model
