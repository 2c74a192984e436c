// SPDX-License-Identifier: BSD-3-Clause
//
// Reducer: leaves out records that change nothing ("safely allowed drop": Kaplan, Smaragdakis,
// Wilson, Trace reduction for virtual memory simulations, SIGMETRICS 1999).
//
// Of three references to a page the middle one is dropped if fewer than k other pages are
// referenced between the outer two: with k page frames and more the page stays resident throughout,
// under LRU and under OPT, and no other page's fate changes. Ours: the reads and writes of the
// dropped reference are added to the earlier one, so that accesses, dirty pages and write-backs
// stay exact too. Not kept: the moment of each access within such a window.
//
// Invariants: counts in = counts out; records come out in the order of what they stand for; at most
// some 8 k records are held back. Threads: one at a time. Failure: none.
#pragma once

#include <cstdint>
#include <vector>

#include "trace/record.hpp"

namespace perdure::trace {

class Reducer {
 public:
  // Records that are final are appended to `out`. `floor_pages` is k, at least 1.
  Reducer(std::uint32_t floor_pages, std::vector<Record>& out);

  void append(const Record& record);  // page ids: any dense numbering, growing as it goes
  // Asks the processor for what append() will look at.
  void prefetch(std::uint32_t page) const {
    if (page < pages_.size()) __builtin_prefetch(&pages_[page], 1);
  }
  void flush();  // all of it is final, and what follows begins anew

 private:
  static constexpr std::uint32_t none = ~std::uint32_t{0};

  struct Page {
    std::uint64_t last_time = 0;   // of its last reference
    std::uint64_t outer = 0;       // the kept reference before the candidate: its time …
    std::uint32_t outer_slot = 0;  // … and its place in the ring
    std::uint32_t candidate_slot = none;
    std::uint32_t newer = none;
    std::uint32_t older = none;
    bool listed = false;
  };
  struct Held {
    Record record;
    bool is_final = false;
    bool is_dropped = false;
  };

  void reference(const Record& record);
  void settle(std::uint32_t page);
  bool droppable(std::uint32_t page) const;
  void to_front(std::uint32_t page);
  void unlink(std::uint32_t page);
  void shorten();
  std::uint32_t hold(const Record& record);
  Held& held(std::uint32_t place) { return ring_[place & ring_mask_]; }
  void release();
  void grow_ring();

  std::uint32_t floor_pages_;
  std::vector<Record>& out_;
  std::vector<Page> pages_;
  std::uint32_t newest_ = none;
  std::uint32_t oldest_ = none;
  std::uint32_t listed_ = 0;
  std::uint64_t time_ = 0;
  Record pending_;  // the run of references to one page that is growing
  std::vector<Held> ring_;
  std::uint32_t ring_mask_ = 0;
  std::uint32_t ring_begin_ = 0;
  std::uint32_t ring_end_ = 0;
};

}  // namespace perdure::trace
