// SPDX-License-Identifier: BSD-3-Clause
//
// What a trace says: records, what they were recorded with, and their totals.
//
// A record stands for `reads` + `writes` accesses of one cache line each to one page, made while
// the page was the most recently used one. Pages have dense ids: page p is the p-th page that was
// touched, so that a simulator indexes arrays by it; the page numbers (address / page_bytes) are
// kept beside. Values; no shared state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perdure::trace {

struct Record {
  std::uint32_t page = 0;  // dense id, in the order of first touch
  std::uint32_t reads = 0;
  std::uint32_t writes = 0;
  bool operator==(const Record&) const = default;
};

// How accesses of the program became accesses of the memory. The numbers are on the medium.
enum class FilterMode : std::uint32_t {
  none = 0,    // every access was recorded
  paper = 1,   // one access for each miss, of the type of the access that missed
  modern = 2,  // a miss reads its line; a dirty victim writes its line back
};

const char* filter_mode_name(FilterMode mode);

// A cache; the default is the one of the paging paper, table 1.
struct CacheShape {
  std::uint64_t size_bytes = std::uint64_t{1} << 20U;
  std::uint32_t line_bytes = 64;
  std::uint32_t ways = 1;  // of a set, replaced by LRU
  bool operator==(const CacheShape&) const = default;
};

// What is known when recording begins.
struct Header {
  std::uint32_t page_bytes = 4096;
  FilterMode mode = FilterMode::paper;
  CacheShape cache;  // with mode none only line_bytes counts: the unit of an access
  // Reduction (reducer.hpp): LRU and OPT are exact with this many pages and more. 0: not reduced.
  std::uint32_t floor_pages = 256;
  std::uint32_t rank = 0;  // of an MPI job; each rank has a trace of its own
  std::uint32_t ranks = 1;
  std::uint64_t created_ns = 0;  // since 1970; Writer fills in the time if it is 0
  std::string command;           // of the program, for people; at most command_bytes_max
  bool operator==(const Header&) const = default;
};

// What is known when recording ends. 0: not known.
struct Ending {
  std::uint64_t program_accesses = 0;  // before the cache
  std::uint64_t elapsed_ns = 0;        // of the recorded run, slowed by recording
  std::uint64_t compute_ns = 0;        // of the program without recording
  bool operator==(const Ending&) const = default;
};

struct PageCounts {
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  bool operator==(const PageCounts&) const = default;
};

// Accesses of one thread of the program. Threads share the pages of their rank and are merged into
// one sequence of records in the order in which they came; only their totals are kept apart.
using StreamTotals = PageCounts;

struct Totals {
  std::uint64_t records = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
  std::vector<PageCounts> pages;      // by dense id
  std::vector<StreamTotals> streams;  // by stream
  Ending ending;
  std::uint64_t accesses() const { return reads + writes; }
};

}  // namespace perdure::trace
