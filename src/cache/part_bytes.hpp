// SPDX-License-Identifier: BSD-3-Clause
//
// Part bytes: where the bytes of a part's blocks stand, in its device and in the cached file, and
// how far the file goes. What they are worth the block table says (block_table.hpp).
//
// Threads: any; what changes the room of a block has the block alone. Failure: of the device.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/grains.hpp"
#include "parts/ownership.hpp"
#include "parts/part_format.hpp"
#include "pmem/device.hpp"

namespace perdure {

class PartBytes {
 public:
  // The device outlives it.
  PartBytes(Device& device, const PartHeaderFormat& header);
  PartBytes(const PartBytes&) = delete;
  PartBytes& operator=(const PartBytes&) = delete;

  // Before the first access.
  void set_file(const BackingFile* file) { file_ = file; }

  Device& device() const { return device_; }
  const BackingFile* file() const { return file_; }
  const PartHeaderFormat& header() const { return header_; }
  const Layout& layout() const { return layout_; }
  PartStateFormat& state() const { return state_; }
  bool with_pool() const { return header_.pool_job[0] != 0; }

  std::byte* of(std::uint64_t block) const { return blocks_ + (block << shift_); }
  // Where the byte at `offset` of the file would be, if this node kept all of it; perhaps nowhere.
  const void* hint_of(std::uint64_t offset) const {
    return reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(blocks_) + offset);
  }
  std::uint64_t file_offset(std::uint64_t block) const {
    const std::uint64_t file_block =
        layout_.nodes == 1 ? block : file_block_of(layout_, {header_.node, block});
    return file_block << shift_;
  }
  // Of anything in the part, in the device.
  std::uint64_t offset_of(const void* place) const {
    return static_cast<std::uint64_t>(static_cast<const std::byte*>(place) - device_.base());
  }

  std::uint64_t block_bytes() const { return layout_.block_bytes; }
  unsigned block_shift() const { return shift_; }
  unsigned grain_shift() const { return grain_shift_; }
  std::uint64_t grain_bytes() const { return std::uint64_t{1} << grain_shift_; }
  Grains grains_of(std::uint64_t within, std::uint64_t bytes) const {
    return Grains::from_to(static_cast<unsigned>(within >> grain_shift_),
                           static_cast<unsigned>((within + bytes - 1) >> grain_shift_));
  }

  // The size of the file, as far as this part knows.
  std::uint64_t size_bytes() const { return word(state_.size_bytes).load(); }
  void grow_size(std::uint64_t bytes) {
    auto size = word(state_.size_bytes);
    std::uint64_t seen = size.load(std::memory_order_relaxed);
    while (seen < bytes && !size.compare_exchange_weak(seen, bytes)) {
    }
  }
  void flush_size() const { device_.flush(header_.state_offset, sizeof(std::uint64_t)); }
  // How many bytes of the block the cached file still has to say.
  std::uint64_t visible_in(std::uint64_t block) const;
  // Blocks that the file has, as far as the part could have room for them.
  std::uint64_t blocks_in_use() const {
    return std::min(header_.blocks, part_blocks_for(layout_, header_.node, size_bytes()));
  }

  // Room for the block, and none: it reads as zeros.
  Status allocate(std::uint64_t block) const {
    return device_.allocate(offset_of(of(block)), layout_.block_bytes);
  }
  bool is_device_full() const { return device_.free_bytes() < layout_.block_bytes; }
  Status discard(std::uint64_t block) const {
    return device_.discard(offset_of(of(block)), layout_.block_bytes);
  }
  void flush(std::uint64_t block, std::uint64_t within, std::uint64_t bytes) const {
    device_.flush(offset_of(of(block)) + within, bytes);
  }
  void flush_grains(std::uint64_t block, const Grains& grains) const;

 private:
  Device& device_;
  PartHeaderFormat header_;
  Layout layout_;
  unsigned shift_;        // of a block
  unsigned grain_shift_;  // of a grain
  PartStateFormat& state_;
  std::byte* blocks_;
  const BackingFile* file_ = nullptr;
};

}  // namespace perdure
