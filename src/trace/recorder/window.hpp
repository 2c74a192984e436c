// SPDX-License-Identifier: BSD-3-Clause
//
// Window: accesses of the memory by one thread, gathered until they touch more than k pages.
//
// Between the first and the last reference to a page in a window lie fewer than k others, so that
// those in the middle may be dropped as in reducer.hpp, exactly for k page frames and more: a page
// gives at most two records, of its first reference, with the counts of all in the middle, and of
// its last. This costs a nanosecond or two for each access; the reducer, which comes next, tens.
//
// Invariants: counts in = counts out; records come out in the order of what they stand for. With
// k = 0 nothing is dropped, and records come out one for each access. Page numbers are below 2^54.
// Threads: one at a time. Failure: none.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

namespace perdure::trace {

class Window {
 public:
  static constexpr std::uint32_t pages_most = 512;  // more would not fit the processor's own cache
  static constexpr std::uint32_t no_index = ~std::uint32_t{0};

  explicit Window(std::uint32_t floor_pages)
      : pages_max_(std::min(floor_pages, pages_most)),
        shift_(64U - static_cast<unsigned>(std::bit_width(std::max(pages_max_, 1U) * 4U))),
        keys_(pages_max_ == 0 ? 0 : std::size_t{1} << (64U - shift_), empty),
        pages_(pages_max_),
        places_(pages_max_) {
    plain_.reserve(pages_max_ == 0 ? plain_most : 0);
  }

  // Takes words, oldest first: the page of word w is w >> shift, and its lowest bit says that it is
  // a write. The first one that it has no room for; it must be flushed then. meet(page) is called
  // for pages that are new in the window.
  template <typename Meet>
  const std::uint64_t* add(const std::uint64_t* word, const std::uint64_t* end, unsigned shift,
                           Meet meet) {
    if (pages_max_ == 0) return add_plain(word, end, shift);
    if (time_ + static_cast<std::uint64_t>(end - word) > time_most) return word;
    const std::uint64_t place_mask = keys_.size() - 1;
    std::uint64_t* const keys = keys_.data();
    Page* const pages = pages_.data();
    std::uint32_t time = time_;
    for (; word != end; ++word) {
      const std::uint64_t key = (*word >> shift) << index_bits;
      std::uint64_t place = place_of(key);
      while ((keys[place] ^ key) >= pages_most && keys[place] != empty) [[unlikely]] {
        place = (place + 1) & place_mask;
      }
      if (keys[place] == empty) [[unlikely]] {
        if (count_ == pages_max_) break;
        meet(*word >> shift);
        pages[count_] = {key >> index_bits, {0, 0}, time, 0};
        places_[count_] = static_cast<std::uint32_t>(place);
        keys[place] = key | count_++;
      }
      Page& page = pages[keys[place] ^ key];
      const auto is_write = static_cast<std::uint32_t>(*word & 1U);
      ++page.counts[is_write];
      page.last = time++ << 1U | is_write;
    }
    time_ = time;
    return word;
  }

  // One access; false, and nothing done, where it is full.
  bool add(std::uint64_t page, bool is_write) {
    const std::uint64_t word = page << 1U | (is_write ? 1U : 0U);
    return add(&word, &word + 1, 1, [](std::uint64_t) {}) != &word;
  }

  // Hands over what is in it, consume(page, index, reads, writes), and is empty. Pages have indices
  // from 0 in the order of their first records; with k = 0 they have none (no_index).
  template <typename Consume>
  void flush(Consume consume) {
    for (const std::uint64_t entry : plain_) {
      consume(entry >> 1U, no_index, 1 - static_cast<std::uint32_t>(entry & 1U),
              static_cast<std::uint32_t>(entry & 1U));
    }
    plain_.clear();
    find_lasts();
    auto last = lasts_.begin();
    for (std::uint32_t index = 0; index < count_; ++index) {
      const Page& page = pages_[index];
      for (; last != lasts_.end() && time_of(*last) < page.first_time; ++last) give(*last, consume);
      const std::uint32_t again = page.last >> 1U != page.first_time ? 1 : 0;
      const bool last_is_write = (page.last & 1U) != 0;
      consume(page.number, index, page.counts[0] - (last_is_write ? 0 : again),
              page.counts[1] - (last_is_write ? again : 0));
    }
    for (; last != lasts_.end(); ++last) give(*last, consume);
    for (std::uint32_t index = 0; index < count_; ++index) keys_[places_[index]] = empty;
    count_ = 0;
    time_ = 0;
  }

  // Of page `index` of `count()`, before they are flushed.
  std::uint32_t count() const { return count_; }
  std::uint64_t page_number(std::uint32_t index) const { return pages_[index].number; }

 private:
  static constexpr unsigned index_bits = 9;  // a key is a page's number, then its index
  static_assert(std::uint32_t{1} << index_bits == pages_most);
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  static constexpr std::uint32_t time_most = 1U << 30U;
  static constexpr std::size_t plain_most = 16384;

  struct Page {
    std::uint64_t number = 0;
    std::uint32_t counts[2] = {0, 0};  // reads, writes
    std::uint32_t first_time = 0;
    std::uint32_t last = 0;  // its time, and in the lowest bit whether it is a write
  };

  std::uint64_t place_of(std::uint64_t key) const {
    return (key >> index_bits) * 0x9e3779b97f4a7c15U >> shift_;
  }

  const std::uint64_t* add_plain(const std::uint64_t* word, const std::uint64_t* end,
                                 unsigned shift) {
    for (; word != end && plain_.size() != plain_most; ++word) {
      plain_.push_back((*word >> shift) << 1U | (*word & 1U));
    }
    return word;
  }

  static std::uint32_t time_of(std::uint64_t last) {
    return static_cast<std::uint32_t>(last >> 32U);
  }

  // Of pages with a second reference: time and index, in the order of time.
  void find_lasts() {
    lasts_.clear();
    for (std::uint32_t index = 0; index < count_; ++index) {
      const Page& page = pages_[index];
      const std::uint64_t time = page.last >> 1U;
      if (time != page.first_time) lasts_.push_back(time << 32U | index);
    }
    // By their bytes, the lowest first: comparisons of some hundreds would cost more than all else.
    for (unsigned shift = 32; time_ >> (shift - 32U) != 0; shift += 8) {
      std::array<std::uint32_t, 257> begins = {};
      for (const std::uint64_t last : lasts_) ++begins[(last >> shift & 0xffU) + 1];
      for (std::size_t i = 1; i < begins.size(); ++i) begins[i] += begins[i - 1];
      sorted_.resize(lasts_.size());
      for (const std::uint64_t last : lasts_) sorted_[begins[last >> shift & 0xffU]++] = last;
      lasts_.swap(sorted_);
    }
  }

  template <typename Consume>
  void give(std::uint64_t last, Consume& consume) const {
    const auto index = static_cast<std::uint32_t>(last);
    const Page& page = pages_[index];
    const std::uint32_t is_write = page.last & 1U;
    consume(page.number, index, 1U - is_write, is_write);
  }

  std::uint32_t pages_max_;
  unsigned shift_;
  std::vector<std::uint64_t> keys_;    // a hash table
  std::vector<Page> pages_;            // in the order of their first references
  std::vector<std::uint32_t> places_;  // of their keys
  std::uint32_t count_ = 0;            // of pages
  std::vector<std::uint64_t> lasts_;
  std::vector<std::uint64_t> sorted_;
  std::vector<std::uint64_t> plain_;
  std::uint32_t time_ = 0;
};

}  // namespace perdure::trace
