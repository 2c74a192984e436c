// SPDX-License-Identifier: BSD-3-Clause
//
// Page set: some of the pages of an array, one bit each. What changed, and what of a copy is out of
// date, are such sets. Only resize() allocates.
//
// Threads: one at a time.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "pmem/page_ranges.hpp"

namespace perdure {

// Pages [first, end).
struct PageRun {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  bool empty() const { return first >= end; }
};

class PageSet {
 public:
  PageSet(std::uint64_t size_bytes, std::uint64_t page_bytes)
      : page_bytes_(page_bytes),
        pages_((size_bytes + page_bytes - 1) / page_bytes),
        words_((pages_ + 63) / 64) {}

  std::uint64_t pages() const { return pages_; }
  // Pages that there were stay in it or out of it; new ones are out of it.
  void resize(std::uint64_t size_bytes) {
    pages_ = (size_bytes + page_bytes_ - 1) / page_bytes_;
    words_.resize((pages_ + 63) / 64);
    if (pages_ % 64 != 0) words_.back() &= ~std::uint64_t{0} >> (64 - pages_ % 64);
  }
  void clear() { std::ranges::fill(words_, 0); }
  void add_all() { add_pages({0, pages_}); }
  void add(const PageSet& other) {
    for (std::size_t word = 0; word < words_.size(); ++word) words_[word] |= other.words_[word];
  }
  // Every page that the bytes touch.
  void add(ByteRange bytes) {
    if (bytes.begin < bytes.end) add_pages(pages_of(bytes));
  }
  void add_pages(PageRun run) {
    run.end = std::min(run.end, pages_);
    for (std::uint64_t at = run.first; at < run.end;) {
      const std::uint64_t end = std::min(run.end, (at / 64 + 1) * 64);
      words_[at / 64] |= ~std::uint64_t{0} >> (64 - (end - at)) << at % 64;
      at = end;
    }
  }
  bool has(std::uint64_t page) const { return (words_[page / 64] >> page % 64 & 1) != 0; }
  // The pages that the bytes touch, and how many of them are in it.
  PageRun pages_of(ByteRange bytes) const {
    return {bytes.begin / page_bytes_,
            std::min(pages_, (bytes.end + page_bytes_ - 1) / page_bytes_)};
  }
  std::uint64_t count(PageRun within) const {
    std::uint64_t total = 0;
    PageRun run = next_run(within.first);
    for (; run.first < within.end; run = next_run(run.end)) {
      total += std::min(run.end, within.end) - run.first;
    }
    return total;
  }
  // The first run of members from `page` on; empty, at pages(): there is none.
  PageRun next_run(std::uint64_t page) const {
    const std::uint64_t first = next(page, 0);
    return {first, next(first, ~std::uint64_t{0})};
  }

 private:
  // The first page from `page` on whose bit, after `flip`, is set.
  std::uint64_t next(std::uint64_t page, std::uint64_t flip) const {
    while (page < pages_) {
      const std::uint64_t rest = (words_[page / 64] ^ flip) >> page % 64;
      if (rest != 0) return std::min(pages_, page + static_cast<unsigned>(std::countr_zero(rest)));
      page = (page / 64 + 1) * 64;
    }
    return pages_;
  }

  std::uint64_t page_bytes_;
  std::uint64_t pages_;
  std::vector<std::uint64_t> words_;
};

}  // namespace perdure
