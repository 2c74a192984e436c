// SPDX-License-Identifier: BSD-3-Clause
//
// Record: which memory a main loop carries from one iteration to the next. It is given blocks of
// memory, accesses, and the beginnings of iterations.
//
// An object must be part of a version if a byte of it is carried: read in an iteration before that
// stores to it, when an earlier iteration had stored to it. What is read first, but was last stored
// to before the loop began, is set up again by a restarted program.
//
// Invariants
//   - Before the first iteration accesses leave no trace.
//   - After the last complete iteration they make nothing carried: they are what the program reads
//     when the loop has ended, and are counted apart in finish().
//   - Memory that is freed keeps its counts, in the sums of where it was allocated.
//
// Threads: one at a time. No failure but std::bad_alloc.
#pragma once

#include <deque>
#include <map>
#include <string>

#include "ipv_check/block_map.hpp"
#include "ipv_check/exchange.hpp"
#include "ipv_check/sites.hpp"
#include "ipv_check/tracked.hpp"

namespace perdure::ipv_check {

class Record {
 public:
  Record();

  void add_variable(std::uintptr_t address, std::uint64_t bytes, const std::string& name,
                    const std::string& file, std::uint32_t line, bool is_scalar);
  void add_named(std::uintptr_t address, std::uint64_t bytes, const std::string& name);
  // It got another size or place, under its name.
  void resize_named(std::uintptr_t address, std::uint64_t bytes, const std::string& name);
  // Null: none is named so; and the iterations that are complete since it lies there.
  void* address_of(const std::string& name) const;
  std::uint32_t iterations_of(const std::string& name) const;
  // `stack` says where; `frames` is asked for it when it is first seen.
  template <typename Frames>
  void allocated(std::uintptr_t address, std::uint64_t bytes, std::uint64_t stack, Frames frames) {
    const auto [place, is_new] = heap_.try_emplace(stack);
    if (is_new) place->second.frames = frames();
    put(address, bytes, tracked_at(place->second));
  }
  void freed(std::uintptr_t address, std::uint64_t bytes);
  // realloc: what was at `from`, and is freed next, is at `to` now.
  void moved(std::uintptr_t from, std::uintptr_t to, std::uint64_t bytes);

  void begin_iteration();  // ends the one before
  void end_loop();

  void load(std::uintptr_t address, std::uint64_t bytes, Site& site);
  void store(std::uintptr_t address, std::uint64_t bytes, Site& site);

  // No more accesses: judges what is left.
  void finish();

  const std::deque<Tracked>& tracked() const { return tracked_; }
  // As of the last complete iteration.
  const std::vector<Exchange>& pairs() const { return pairs_; }
  const SiteTable& sites() const { return sites_; }
  std::uint32_t iterations() const { return complete_; }
  bool has_begun() const { return now_ != 0; }

 private:
  // A place that allocates. Blocks from before the loop have rows of their own, up to a number.
  struct HeapPlace {
    std::vector<Frame> frames;
    std::uint32_t single_blocks = 0;
    Tracked* others = nullptr;
  };

  Tracked& tracked_at(HeapPlace& place);
  void put(std::uintptr_t address, std::uint64_t bytes, Tracked& tracked);
  template <typename Use>
  void for_pieces(std::uintptr_t address, std::uint64_t bytes, Site& site, Use use);
  void load_piece(Block& block, std::size_t begin, std::size_t end, Site& site);
  void store_piece(Block& block, std::size_t begin, std::size_t end, Site& site);
  void note_writer(Block& block, Site& site);
  static void note_elements(Block& block, std::size_t begin, Site& site);
  void end_iteration();
  void leave(Block& block);

  SiteTable sites_;
  struct Named {
    std::uintptr_t address;
    std::uint64_t bytes;
    Tracked* tracked;
    std::uint32_t since;  // complete iterations
  };
  std::deque<Tracked> tracked_;
  std::map<std::string, Named> named_;
  std::map<std::uint64_t, HeapPlace> heap_;  // by stack
  BlockMap blocks_;
  std::vector<Exchange> pairs_;
  std::uint32_t now_ = 0;  // the iteration that runs; 0: before the loop
  std::uint32_t complete_ = 0;
  bool finished_ = false;
};

}  // namespace perdure::ipv_check
