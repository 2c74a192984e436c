// SPDX-License-Identifier: BSD-3-Clause
//
// Where bytes lie that are not all together: runs, and items that repeat them.
//
//   DatatypeMap  the bytes of one item of an MPI datatype
//   RunWalk      goes along the bytes of items that lie one extent after another
//
// No run is empty, and starts[i] is the sum of the bytes of runs before i. Offsets may be negative
// and may overlap: a map keeps the order in which MPI packs. No MPI in here. Threads: values.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "mpi/element.hpp"

namespace perdure {

struct ByteRun {
  std::int64_t offset;  // from the address, or the place in the file, of the item
  std::int64_t bytes;
  bool operator==(const ByteRun&) const = default;
};

struct DatatypeMap {
  std::int64_t size_bytes = 0;       // of what one item carries
  std::int64_t extent_bytes = 0;     // from one item to the next
  std::vector<ByteRun> runs;         // in the order of the type map, neighbours joined
  bool contiguous = false;           // one run at 0 and no gap: many items are one run too
  std::vector<std::int64_t> starts;  // bytes carried before each run
  std::int64_t first = 0;            // all of its bytes are from here
  std::int64_t end = 0;              // to before here
  std::int64_t run_bytes = 0;        // of each run, if all have as many; else 0
  std::int64_t stride_bytes = 0;     // from each run to the next, if that is always as much; else 0
  Element element = Element::none;   // what they all mean; runs are of whole ones then
  mutable bool committed = false;    // its type was, as MPI has said (datatype_map.hpp)
};

// The sums before each run, for DatatypeMap::starts and FileView::starts.
inline std::vector<std::int64_t> starts_of(const std::vector<ByteRun>& runs) {
  std::vector<std::int64_t> starts;
  starts.reserve(runs.size());
  std::int64_t before = 0;
  for (const ByteRun& run : runs) {
    starts.push_back(before);
    before += run.bytes;
  }
  return starts;
}

// Fills what says how the runs lie.
inline void measure_runs(DatatypeMap& map) {
  map.starts = starts_of(map.runs);
  map.contiguous =
      map.runs.size() == 1 && map.runs[0].offset == 0 && map.runs[0].bytes == map.extent_bytes;
  if (map.runs.empty()) return;
  map.first = map.end = map.runs.front().offset;
  map.run_bytes = map.runs.front().bytes;
  for (const ByteRun& run : map.runs) {
    map.first = std::min(map.first, run.offset);
    map.end = std::max(map.end, run.offset + run.bytes);
    if (run.bytes != map.run_bytes) map.run_bytes = 0;
  }
  if (map.runs.size() < 2) return;
  map.stride_bytes = map.runs[1].offset - map.runs[0].offset;
  for (std::size_t i = 2; i < map.runs.size(); ++i) {
    if (map.runs[i].offset - map.runs[i - 1].offset != map.stride_bytes) map.stride_bytes = 0;
  }
}

// Along the carried bytes of endless items, each with these runs, from byte `at` on. The vectors
// must outlive the walk. An item without bytes has no place to be: left() is 0.
class RunWalk {
 public:
  RunWalk(const std::vector<ByteRun>& runs, const std::vector<std::int64_t>& starts,
          std::int64_t item_bytes, std::int64_t extent_bytes, std::int64_t at)
      : runs_(runs), extent_bytes_(extent_bytes) {
    if (runs.empty()) return;
    const std::int64_t item = at / item_bytes;
    const std::int64_t rest = at % item_bytes;
    const auto after = std::ranges::upper_bound(starts, rest);
    run_ = static_cast<std::size_t>(after - starts.begin()) - 1;
    item_offset_ = item * extent_bytes;
    inside_ = rest - starts[run_];
  }

  // Of the byte that the walk has reached, from where item 0 lies.
  std::int64_t offset() const {
    return runs_.empty() ? 0 : item_offset_ + runs_[run_].offset + inside_;
  }
  // Bytes from there to the end of the run.
  std::int64_t left() const { return runs_.empty() ? 0 : runs_[run_].bytes - inside_; }

  void advance(std::int64_t bytes) {  // at most left()
    inside_ += bytes;
    if (inside_ < runs_[run_].bytes) return;
    inside_ = 0;
    if (++run_ < runs_.size()) return;
    run_ = 0;
    item_offset_ += extent_bytes_;
  }

 private:
  const std::vector<ByteRun>& runs_;
  std::int64_t extent_bytes_;
  std::int64_t item_offset_ = 0;
  std::size_t run_ = 0;
  std::int64_t inside_ = 0;
};

// The same where every byte follows the one before.
class StraightWalk {
 public:
  explicit StraightWalk(std::int64_t at) : at_(at) {}
  std::int64_t offset() const { return at_; }
  std::int64_t left() const { return std::numeric_limits<std::int64_t>::max(); }
  void advance(std::int64_t bytes) { at_ += bytes; }

 private:
  std::int64_t at_;
};

}  // namespace perdure
