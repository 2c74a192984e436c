// SPDX-License-Identifier: BSD-3-Clause
//
// Line set: some of an object's cache lines, one bit each. What an iteration changed, what of a
// copy is out of date, and what must still be flushed are such sets. Nothing is allocated after
// construction, so that a fault handler may use one.
//
// The bits of a span of 4096 lines count only while some of its lines are members and others are
// not: rows fill an object from one end to the other, and each iteration goes through a dozen sets.
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
        words_((lines_ + 63) / 64),
        spans_((lines_ + span_lines - 1) / span_lines, Members::none) {}

  void clear() { std::ranges::fill(spans_, Members::none); }
  void add_all() { std::ranges::fill(spans_, Members::all); }
  bool empty() const { return next(0, lines_, true) == lines_; }

  // Every line that the range touches.
  void add(ByteRange range) {
    if (range.begin >= range.end) return;
    set(range.begin / cache_line_bytes, (range.end - 1) / cache_line_bytes + 1, true);
  }
  // Every line that lies in the range whole; its ends are counted from the object's beginning.
  void remove(ByteRange range) {
    set((range.begin + cache_line_bytes - 1) / cache_line_bytes, range.end / cache_line_bytes,
        false);
  }
  void add(const LineSet& other) {
    for (std::size_t span = 0; span < spans_.size(); ++span) {
      if (spans_[span] == Members::all || other.spans_[span] == Members::none) continue;
      if (other.spans_[span] == Members::all) {
        spans_[span] = Members::all;
        continue;
      }
      write_bits(span);
      for (std::size_t word = first_word(span); word < end_word(span); ++word) {
        words_[word] |= other.words_[word];
      }
    }
  }
  void take(LineSet& other) {  // swaps, without allocating
    words_.swap(other.words_);
    spans_.swap(other.spans_);
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
  enum class Members : std::uint8_t { none, some, all };  // some: as the bits say
  static constexpr std::uint64_t span_lines = 4096;
  static constexpr std::size_t span_words = span_lines / 64;

  std::size_t first_word(std::size_t span) const { return span * span_words; }
  std::size_t end_word(std::size_t span) const {
    return std::min(words_.size(), (span + 1) * span_words);
  }

  void write_bits(std::size_t span) {
    if (spans_[span] == Members::some) return;
    const std::uint64_t bits = spans_[span] == Members::all ? ~std::uint64_t{0} : 0;
    std::fill(words_.begin() + static_cast<std::ptrdiff_t>(first_word(span)),
              words_.begin() + static_cast<std::ptrdiff_t>(end_word(span)), bits);
    spans_[span] = Members::some;
  }

  void set(std::uint64_t first, std::uint64_t end, bool member) {
    const Members whole = member ? Members::all : Members::none;
    for (; first < end; first = (first / span_lines + 1) * span_lines) {
      const std::size_t span = first / span_lines;
      const std::uint64_t begin = span * span_lines;
      const std::uint64_t span_end = std::min(lines_, begin + span_lines);
      const std::uint64_t here_end = std::min(end, span_end);
      if (spans_[span] == whole) continue;
      if (first > begin || here_end < span_end) {
        write_bits(span);
        set_bits(first, here_end, member);
        if (here_end < span_end || next(begin, span_end, !member) < span_end) continue;
      }
      spans_[span] = whole;
    }
  }
  void set_bits(std::uint64_t first, std::uint64_t end, bool member) {
    for (std::uint64_t word = first / 64; word <= (end - 1) / 64; ++word) {
      std::uint64_t mask = ~std::uint64_t{0};
      if (word == first / 64) mask &= ~std::uint64_t{0} << first % 64;
      if (word == (end - 1) / 64) mask &= ~std::uint64_t{0} >> (63 - (end - 1) % 64);
      words_[word] = member ? words_[word] | mask : words_[word] & ~mask;
    }
  }
  // The first line from `line` on that is in the set, or, with `member` false, that is not.
  std::uint64_t next(std::uint64_t line, std::uint64_t end, bool member) const {
    while (line < end) {
      const std::size_t span = line / span_lines;
      if (spans_[span] != Members::some) {
        if ((spans_[span] == Members::all) == member) return line;
        line = (span + 1) * span_lines;
        continue;
      }
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
  std::vector<Members> spans_;
};

}  // namespace perdure
