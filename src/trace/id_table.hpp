// SPDX-License-Identifier: BSD-3-Clause
//
// IdTable: page numbers → dense ids in the order of first touch. Open addressing, at most half
// full; some 40 bytes for each page. Threads: one. Failure: none; ids end at trace_pages_max.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

namespace perdure::trace {

class IdTable {
 public:
  IdTable() : entries_(1024) {}

  std::uint32_t size() const { return size_; }

  // Asks the processor for what find_or_add() will look at.
  void prefetch(std::uint64_t page) const { __builtin_prefetch(&entries_[place_of(page)]); }

  // The id of `page`, and whether it is new.
  std::pair<std::uint32_t, bool> find_or_add(std::uint64_t page) {
    std::size_t place = place_of(page);
    for (; entries_[place].id_plus_1 != 0; place = (place + 1) & (entries_.size() - 1)) {
      if (entries_[place].page == page) return {entries_[place].id_plus_1 - 1, false};
    }
    entries_[place] = {page, ++size_};
    if (std::size_t{size_} * 2 > entries_.size()) enlarge();
    return {size_ - 1, true};
  }

 private:
  struct Entry {
    std::uint64_t page = 0;
    std::uint32_t id_plus_1 = 0;  // 0: no page
  };

  std::size_t place_of(std::uint64_t page) const {
    const std::uint64_t mixed = (page ^ page >> 32U) * 0x9e3779b97f4a7c15U;
    return (mixed >> 20U) & (entries_.size() - 1);
  }

  void enlarge() {
    std::vector<Entry> old(entries_.size() * 2);
    old.swap(entries_);
    for (const Entry& entry : old) {
      if (entry.id_plus_1 == 0) continue;
      std::size_t place = place_of(entry.page);
      while (entries_[place].id_plus_1 != 0) place = (place + 1) & (entries_.size() - 1);
      entries_[place] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::uint32_t size_ = 0;
};

// Both ways: the id of a page number, and the number of an id.
class PageIds {
 public:
  void prefetch(std::uint64_t page) const { ids_.prefetch(page); }
  std::uint32_t id_of(std::uint64_t page) {
    const auto [id, is_new] = ids_.find_or_add(page);
    if (is_new) numbers_.push_back(page);
    last_page_ = page;
    last_ = id;
    return id;
  }
  std::uint64_t number_of(std::uint32_t id) const { return numbers_[id]; }
  // Of id_of(): whether it was asked for this page the last time, and what it said.
  bool is_last(std::uint64_t page) const { return page == last_page_ && !numbers_.empty(); }
  std::uint32_t last() const { return last_; }

 private:
  IdTable ids_;
  std::vector<std::uint64_t> numbers_;
  std::uint64_t last_page_ = 0;
  std::uint32_t last_ = 0;
};

}  // namespace perdure::trace
