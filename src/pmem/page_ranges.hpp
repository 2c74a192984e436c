// SPDX-License-Identifier: BSD-3-Clause
//
// The set of byte ranges that an ordinary file has still to write back: noted by flush(), taken by
// fence(). Bounded: more than `most` separate ranges become the one range that holds them all,
// which is correct (writing back too much never hurts, pmem.D3) and then also faster.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perdure {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

class PageRanges {
 public:
  explicit PageRanges(std::size_t most = 64);
  void add(ByteRange range);
  // The ranges, sorted and without touching neighbours; the set is empty afterwards.
  std::vector<ByteRange> take();

 private:
  void merge();

  std::size_t most_;
  std::vector<ByteRange> ranges_;
};

}  // namespace perdure
