// SPDX-License-Identifier: BSD-3-Clause
//
// Streamed range: bytes of an array's working copy that went past the cache, so that they need no
// flush. One range is remembered: rows that follow each other make it grow. Others are flushed
// again, which costs time and nothing else.
#pragma once

#include <cstdint>

#include "pmem/page_ranges.hpp"

namespace perdure {

class StreamedRange {
 public:
  void add(std::uint64_t first_byte, std::uint64_t count_bytes) {
    if (first_byte == range_.end) {
      range_.end += count_bytes;
    } else if (count_bytes > range_.end - range_.begin) {
      range_ = {first_byte, first_byte + count_bytes};
    }
  }
  void clear() { range_ = {}; }
  const ByteRange& range() const { return range_; }

 private:
  ByteRange range_;
};

}  // namespace perdure
