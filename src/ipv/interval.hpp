// SPDX-License-Identifier: BSD-3-Clause
//
// Interval: the bytes of an object that are current in its new copy, in one iteration. All others
// are current in the old copy and were not stored to since the copies swapped roles. Pure.
//
// A row is about to be overwritten whole. Disjoint from the interval, its old values can be loaded
// from the old copy; what lies between it and the interval is copied, and the interval grows over
// both. Otherwise its loads must see what was stored to it before, so they use the new copy, into
// which the part that was not current there is copied. Rows in any order, and overlapping, are
// right; ascending or descending ones are fast.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "pmem/page_ranges.hpp"

namespace perdure {

struct RowPlan {
  std::array<ByteRange, 2> copies;  // from the old copy to the new one, before the row; or empty
  bool loads_from_old = false;
};

class Interval {
 public:
  bool empty() const { return range_.begin == range_.end; }
  ByteRange range() const { return range_; }

  RowPlan row(ByteRange row) {
    RowPlan plan;
    if (row.begin >= row.end) return plan;
    if (empty()) {
      range_ = row;
      plan.loads_from_old = true;
      return plan;
    }
    plan.loads_from_old = row.begin >= range_.end || row.end <= range_.begin;
    if (plan.loads_from_old) {
      plan.copies[0] = row.begin >= range_.end ? ByteRange{range_.end, row.begin}
                                               : ByteRange{row.end, range_.begin};
    } else {
      plan.copies[0] = {row.begin, std::max(row.begin, range_.begin)};
      plan.copies[1] = {std::min(row.end, range_.end), row.end};
    }
    range_ = {std::min(range_.begin, row.begin), std::max(range_.end, row.end)};
    return plan;
  }

  // What must be copied so that the new copy is current everywhere; it is then.
  std::array<ByteRange, 2> complete(std::uint64_t object_bytes) {
    std::array<ByteRange, 2> copies{ByteRange{0, range_.begin},
                                    ByteRange{range_.end, object_bytes}};
    if (empty()) copies = {ByteRange{0, object_bytes}, ByteRange{}};
    range_ = {0, object_bytes};
    return copies;
  }
  void reset() { range_ = {}; }

 private:
  ByteRange range_;
};

}  // namespace perdure
