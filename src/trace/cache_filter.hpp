// SPDX-License-Identifier: BSD-3-Clause
//
// CacheFilter: the CPU cache between a program and its memory, for recorders. A hit costs one
// comparison inline; everything else is out of line.
//
//   CacheFilter filter(shape, FilterMode::paper, record_miss, &recorder);
//   filter.access(address, bytes, is_write);  // calls record_miss for each access of the memory
//
// Invariant: `first_` holds the most recently used line of each set, so a hit there changes nothing
// in the order of replacement. A set of more ways keeps the others, in LRU order, after it.
// Modes: see FilterMode. In mode paper the cache allocates on reads and writes alike. In mode
// modern a miss reports a read, and then a write if it evicted a dirty line; lines that are dirty
// at the end are reported by write_back(), which a recorder may leave out. Threads: one filter for
// each thread, as each core has its own cache. Failure: none; check_shape() says what is wrong with
// a shape.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "trace/record.hpp"

namespace perdure::trace {

// Sizes are powers of two, and there is at least one set; Code::invalid_argument otherwise.
Status check_shape(const CacheShape& shape);

class CacheFilter {
 public:
  // `address` is that of the line's first byte.
  using Consumer = void (*)(void* context, std::uint64_t address, bool is_write);

  // `shape` must pass check_shape(). With FilterMode::none every line that is touched is reported.
  CacheFilter(const CacheShape& shape, FilterMode mode, Consumer consumer, void* context);

  CacheFilter(const CacheFilter&) = delete;
  CacheFilter& operator=(const CacheFilter&) = delete;

  // One access of 1 byte and more; it touches each line that it overlaps once.
  void access(std::uint64_t address, std::uint64_t bytes, bool is_write) {
    const std::uint64_t line = address >> line_shift_;
    const std::uint64_t last = (address + bytes - 1) >> line_shift_;
    touch(line, is_write);
    if (line != last) [[unlikely]] {
      touch_more(line + 1, last, is_write);
    }
  }

  // Reports a write of every line that is dirty, and makes it clean. Nothing in mode paper.
  void write_back();

  std::uint64_t misses() const { return misses_; }  // lines that were read in

  // For code that looks for a hit itself, as touch() does: the address of the first line of each
  // set, and the same of those that need no note of being written, where set = line & set_mask().
  // The entries stay where they are. With FilterMode::none there is one, and it is empty.
  static constexpr std::uint64_t empty = ~std::uint64_t{0};
  std::uint64_t* read_entries() { return read_entries_; }
  std::uint64_t* write_entries() { return write_entries_; }
  std::uint64_t set_mask() const { return set_mask_; }

 private:
  void touch(std::uint64_t line, bool is_write) {
    const std::uint64_t* entries = is_write ? write_entries_ : read_entries_;
    if (entries[line & set_mask_] == line << line_shift_) [[likely]]
      return;
    miss_first(line, is_write);
  }
  void put_first(std::uint64_t set, std::uint64_t address, bool is_dirty);

  void touch_more(std::uint64_t line, std::uint64_t last, bool is_write);
  [[gnu::noinline]] void miss_first(std::uint64_t line, bool is_write);
  void report(std::uint64_t address, bool is_write) { consumer_(context_, address, is_write); }

  std::uint32_t line_shift_;
  std::uint64_t set_mask_;
  std::vector<std::uint64_t> first_;   // the line of each set that was used last
  std::vector<std::uint64_t> dirty_;   // in mode modern: that line, if it is dirty
  std::vector<std::uint64_t> others_;  // ways - 1 for each set, most recently used first; address,
                                       // and in bit 0 whether it is dirty
  std::uint64_t* read_entries_;
  std::uint64_t* write_entries_;
  std::uint32_t others_per_set_;
  FilterMode mode_;
  Consumer consumer_;
  void* context_;
  std::uint64_t misses_ = 0;
};

}  // namespace perdure::trace
