// SPDX-License-Identifier: BSD-3-Clause
//
// Checksum tables: of each copy of an array the checksums of its blocks and, where the kind has
// any, of their pages (block_checksum.hpp). Those of blocks are on the device, too, once a version
// names the copy. An array without checksums has none.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/data_checksum.hpp"
#include "pmem/device.hpp"
#include "pool/array_entry.hpp"
#include "pool/page_set.hpp"

namespace perdure {

// What is copied and summed together: a page, or a whole block where its checksum is not of pages.
std::uint64_t unit_bytes(const ArrayEntry& entry, std::uint64_t block_bytes);

// Of one copy; `of_pages` is null where the checksum is not one of pages.
struct CopySums {
  std::vector<std::uint64_t>& of_blocks;
  std::vector<std::uint64_t>* of_pages = nullptr;
};

class ChecksumTables {
 public:
  // Of copies that none is known of.
  void make(const ArrayEntry& entry, std::uint64_t block_bytes);
  // Those that stay are as they were.
  void resize(std::uint64_t size_bytes);

  bool is_there() const { return !blocks_.empty(); }
  bool has_pages() const { return !pages_.empty(); }
  CopySums of(std::uint32_t copy) {
    return {is_there() ? blocks_[copy] : nothing_, has_pages() ? &pages_[copy] : nullptr};
  }
  // From the first one on of what is summed by itself: pages, or whole blocks.
  std::uint64_t* units_of(std::uint32_t copy) {
    return has_pages() ? pages_[copy].data() : blocks_[copy].data();
  }
  // The sums of these pages are new; nothing where there are none of pages.
  void sum_blocks_of(std::uint32_t copy, PageRun pages);
  // As the copy is from `contents` on.
  void sum(std::uint32_t copy, const std::byte* contents);

  // To the place that `entry` has for it, except for the caller's fence.
  void store(Device& device, const ArrayEntry& entry, std::uint32_t copy) const;
  std::uint64_t checksum_of(std::uint32_t copy) const;

 private:
  std::uint64_t page_bytes() const;

  DataChecksum kind_ = DataChecksum::crc64;
  std::uint64_t block_bytes_ = 0;
  std::uint64_t size_bytes_ = 0;
  std::vector<std::vector<std::uint64_t>> blocks_;  // by copy
  std::vector<std::vector<std::uint64_t>> pages_;
  std::vector<std::uint64_t> nothing_;
};

}  // namespace perdure
