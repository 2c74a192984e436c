// SPDX-License-Identifier: BSD-3-Clause
//
// Line set: some of an object's cache lines, one bit each. What an iteration changed, what of a
// copy is out of date, and what must still be flushed are such sets. Nothing is allocated after
// construction, so that a fault handler may use one.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "pmem/flush.hpp"
#include "pmem/page_ranges.hpp"

namespace perdure {

class LineSet {
 public:
  explicit LineSet(std::uint64_t object_bytes)
      : lines_((object_bytes + cache_line_bytes - 1) / cache_line_bytes),
        words_((lines_ + 63) / 64) {}

  void clear() { std::fill(words_.begin(), words_.end(), 0U); }
  void add_all() {
    std::fill(words_.begin(), words_.end(), ~std::uint64_t{0});
    if (lines_ % 64 != 0) words_.back() = (std::uint64_t{1} << lines_ % 64) - 1;
  }
  bool empty() const {
    return std::all_of(words_.begin(), words_.end(), [](std::uint64_t word) { return word == 0; });
  }

  // Every line that the range touches.
  void add(ByteRange range) {
    if (range.begin >= range.end) return;
    change(range.begin / cache_line_bytes, (range.end - 1) / cache_line_bytes + 1,
           [](std::uint64_t& word, std::uint64_t mask) { word |= mask; });
  }
  // Every line that lies in the range whole; its ends are counted from the object's beginning.
  void remove(ByteRange range) {
    const std::uint64_t first = (range.begin + cache_line_bytes - 1) / cache_line_bytes;
    const std::uint64_t end = range.end / cache_line_bytes;
    if (first >= end) return;
    change(first, end, [](std::uint64_t& word, std::uint64_t mask) { word &= ~mask; });
  }
  void add(const LineSet& other) {
    for (std::size_t i = 0; i < words_.size(); ++i) words_[i] |= other.words_[i];
  }
  void take(LineSet& other) {  // swaps, without allocating
    words_.swap(other.words_);
  }
  void assign(const LineSet& other) {
    std::copy(other.words_.begin(), other.words_.end(), words_.begin());
  }

  // Calls `each` with the pieces of `within` that lie in lines of the set, or, with `member` false,
  // in no line of it, neighbours joined.
  template <typename Each>
  void for_each_run(ByteRange within, const Each& each, bool member = true) const {
    if (within.begin >= within.end) return;
    const std::uint64_t end = (within.end - 1) / cache_line_bytes + 1;
    for (std::uint64_t line = within.begin / cache_line_bytes; line < end;) {
      line = next(line, end, member);
      if (line >= end) return;
      const std::uint64_t run_end = next(line, end, !member);
      each(ByteRange{std::max(within.begin, line * cache_line_bytes),
                     std::min(within.end, run_end * cache_line_bytes)});
      line = run_end;
    }
  }

 private:
  template <typename Change>
  void change(std::uint64_t first, std::uint64_t end, const Change& apply) {
    for (std::uint64_t word = first / 64; word <= (end - 1) / 64; ++word) {
      std::uint64_t mask = ~std::uint64_t{0};
      if (word == first / 64) mask &= ~std::uint64_t{0} << first % 64;
      if (word == (end - 1) / 64) mask &= ~std::uint64_t{0} >> (63 - (end - 1) % 64);
      apply(words_[word], mask);
    }
  }
  // The first line from `line` on that is in the set, or, with `member` false, that is not.
  std::uint64_t next(std::uint64_t line, std::uint64_t end, bool member) const {
    while (line < end) {
      const std::uint64_t word = member ? words_[line / 64] : ~words_[line / 64];
      const std::uint64_t rest = word >> line % 64;
      if (rest != 0)
        return std::min<std::uint64_t>(end,
                                       line + static_cast<std::uint64_t>(std::countr_zero(rest)));
      line = (line / 64 + 1) * 64;
    }
    return end;
  }

  std::uint64_t lines_;
  std::vector<std::uint64_t> words_;
};

}  // namespace perdure
