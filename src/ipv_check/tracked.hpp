// SPDX-License-Identifier: BSD-3-Clause
//
// Tracked: what the report of `record` has a row for: a named object, a variable, a block of memory
// that was allocated before the loop, or all blocks that one place of the program allocates in it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ipv_check/sites.hpp"

namespace perdure::ipv_check {

enum class TrackedKind { named, variable, scalar, heap };

// A return address within a module, innermost first.
struct Frame {
  std::string module;
  std::uint64_t offset = 0;
};

// Sums over the bytes of blocks. A byte is carried if an iteration read it, before storing to it,
// and an earlier iteration had stored to it.
struct ByteTotals {
  std::uint64_t carried = 0;
  std::uint64_t alive_after[2] = {0, 0};  // carried from an even iteration on, from an odd one
  std::uint64_t rewritten = 0;   // stored to before they are read, whenever they are; not carried
  std::uint64_t read_only = 0;   // never stored to in the loop
  std::uint64_t stored = 0;      // ever, in the loop
  std::uint64_t unread = 0;      // stored to and never read
  std::uint64_t after_loop = 0;  // not carried, but stored to in the loop and read after it

  void add(const ByteTotals& other) {
    carried += other.carried;
    for (int odd = 0; odd < 2; ++odd) alive_after[odd] += other.alive_after[odd];
    rewritten += other.rewritten;
    read_only += other.read_only;
    stored += other.stored;
    unread += other.unread;
    after_loop += other.after_loop;
  }
};

// The struct of which a block is made: the largest one through which the loop accesses it.
struct Elements {
  std::shared_ptr<const TypeText> type;  // null: none is known
  std::uint64_t phase = 0;               // where the first one begins in the block
  bool clear = true;                     // all accesses agree about that
  // Bytes that are carried, by their place in the struct.
  using Counts = std::vector<std::uint64_t>;
  Counts carried, if_complete, if_not;  // as ByteTotals
};

struct Writer {
  std::uint32_t first_iteration = 0;
  std::uint32_t last_iteration = 0;  // so far
  std::uint64_t iterations = 0;      // in which it stored
};

struct Tracked {
  TrackedKind kind = TrackedKind::heap;
  std::string name;  // heap: empty
  std::string file;  // of a variable
  std::uint32_t line = 0;
  std::vector<Frame> frames;  // heap: where it is allocated
  std::uint32_t ordinal = 0;  // among the blocks allocated there, from 1; 0: all further ones

  std::uint64_t blocks = 0;          // ever
  std::uint64_t live_bytes = 0;      // now
  std::uint64_t live_bytes_max = 0;  // while the loop ran
  ByteTotals totals;
  // Of blocks that were freed in the iteration that runs: what is to be added if it becomes
  // complete, and what if it does not, being what follows the loop.
  ByteTotals if_complete;
  ByteTotals if_not;
  Elements elements;
  const Site* elements_noted = nullptr;  // by which access, last

  // Of the iteration that runs.
  std::uint64_t stored_now = 0;  // bytes
  SiteNumber first_now = 0;
  SiteNumber last_now = 0;

  // Of complete iterations.
  std::uint64_t stored_min = 0;
  std::uint64_t stored_max = 0;
  std::uint64_t storing[2] = {0, 0};  // even and odd iterations that stored to it
  std::uint64_t storing_min = 0;      // bytes, of these
  std::uint64_t kept_max = 0;  // bytes that an iteration which stored to it left as they were
  SiteNumber first_writer = 0;
  SiteNumber last_writer = 0;
  bool first_differs = false;  // from iteration to iteration
  bool last_differs = false;
  std::map<SiteNumber, Writer> writers;
  SiteNumber carried_at = 0;  // the first read of a carried byte
  std::uint32_t carried_iteration = 0;
};

}  // namespace perdure::ipv_check
