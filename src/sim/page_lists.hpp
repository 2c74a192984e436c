// SPDX-License-Identifier: BSD-3-Clause
//
// PageLists: lists of pages, each page in one of them or in none, linked through two arrays: every
// operation is O(1), 8 bytes for a page. Policies are made of it. Threads: one. Failure: none; who
// takes a page from a list that it is not in corrupts both.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/memory.hpp"

namespace perdure::sim {

template <std::uint32_t lists>
class PageLists {
 public:
  // Nodes below `lists` are the ends of the lists, and pages come after them.
  PageLists() : nodes_(lists) {
    for (std::uint32_t list = 0; list < lists; ++list) nodes_[list] = {list, list};
  }

  void grow(std::uint32_t pages) { nodes_.resize(std::size_t{pages} + lists); }
  std::uint64_t size(std::uint32_t list) const { return sizes_[list]; }
  bool empty(std::uint32_t list) const { return sizes_[list] == 0; }
  PageId back(std::uint32_t list) const { return nodes_[list].before - lists; }
  PageId front(std::uint32_t list) const { return nodes_[list].after - lists; }

  void push_front(std::uint32_t list, PageId page) {
    ++sizes_[list];
    insert(list, page + lists);
  }
  void remove(std::uint32_t list, PageId page) {
    --sizes_[list];
    unlink(page + lists);
  }
  void to_front(std::uint32_t list, PageId page) {
    if (nodes_[list].after == page + lists) return;
    unlink(page + lists);
    insert(list, page + lists);
  }
  // Before the first page, from the front, for which `is_older` holds.
  template <typename IsOlder>
  void insert_ordered(std::uint32_t list, PageId page, IsOlder is_older) {
    std::uint32_t place = list;
    while (nodes_[place].after != list && !is_older(nodes_[place].after - lists)) {
      place = nodes_[place].after;
    }
    ++sizes_[list];
    insert(place, page + lists);
  }
  PageId pop_back(std::uint32_t list) {
    const PageId page = back(list);
    remove(list, page);
    return page;
  }
  // pop_back() and push_front(); the size stays.
  PageId replace_back(std::uint32_t list, PageId page) {
    const std::uint32_t last = nodes_[list].before, before = nodes_[last].before;
    nodes_[list].before = before;
    nodes_[before].after = list;
    insert(list, page + lists);
    return last - lists;
  }

 private:
  struct Node {
    std::uint32_t before = 0;  // towards the front
    std::uint32_t after = 0;
  };

  void insert(std::uint32_t before, std::uint32_t node) {
    const std::uint32_t after = nodes_[before].after;
    nodes_[node] = {before, after};
    nodes_[after].before = node;
    nodes_[before].after = node;
  }
  void unlink(std::uint32_t node) {
    // Two loads: one of both would wait for the store of either, which is often the last one.
    const std::uint32_t before = nodes_[node].before, after = nodes_[node].after;
    nodes_[before].after = after;
    nodes_[after].before = before;
  }

  std::vector<Node> nodes_;
  std::array<std::uint64_t, lists> sizes_ = {};
};

}  // namespace perdure::sim
