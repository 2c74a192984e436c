// SPDX-License-Identifier: BSD-3-Clause
//
// Open rows: those between their begin and end, and the buffer that the only one may be stored to
// in the place of the object. Of one thread, under the object's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "pmem/flush.hpp"
#include "pmem/page_ranges.hpp"

namespace perdure {

class OpenRows {
 public:
  void open() { ++count_; }
  bool only_one() const { return count_ == 1; }
  std::uint64_t room() const { return room_; }

  // For the row that is open, at the place in a cache line that it has in the object.
  std::byte* take_buffer(ByteRange row) {
    const std::uint64_t room = row.end - row.begin + 2 * cache_line_bytes;
    if (room_ < room) {
      memory_ = std::make_unique<std::byte[]>(room + cache_line_bytes);
      room_ = room + cache_line_bytes;
      const auto begin = reinterpret_cast<std::uintptr_t>(memory_.get());
      buffer_ = memory_.get() + (cache_line_bytes - begin % cache_line_bytes);
    }
    buffered_ = row;
    return buffer_ + row.begin % cache_line_bytes;
  }
  // The buffer of the row, if it has one; it is valid until the next take_buffer().
  const std::byte* close(ByteRange row) {
    if (count_ > 0) --count_;
    if (!buffered_ || !(*buffered_ == row)) return nullptr;
    buffered_.reset();
    return buffer_ + row.begin % cache_line_bytes;
  }
  void forget() {
    count_ = 0;
    buffered_.reset();
  }

 private:
  unsigned count_ = 0;
  std::optional<ByteRange> buffered_;
  std::byte* buffer_ = nullptr;
  std::unique_ptr<std::byte[]> memory_;
  std::uint64_t room_ = 0;
};

}  // namespace perdure
