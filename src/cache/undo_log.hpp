// SPDX-License-Identifier: BSD-3-Clause
//
// Undo log: what the grains of a part held at the newest version of the pool with which the file is
// committed. In a file of its own beside the part, in which every grain has its place.
//
// Invariants
//   cache.D1  A grain is changed only when what it held at the version before the change is in its
//       place, durably. So recovery to that version can put it back.
//   cache.D2  A place is used again for a version only when that version is durable on all ranks.
//       What it held of older ones is of no use any more, as recovery never goes back beyond it.
//
// Threads: keep() any, in any number of processes. Failure: keep() fails when the device is full;
// the grain must not be changed then.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.hpp"
#include "parts/part_format.hpp"
#include "pmem/device.hpp"

namespace perdure {

struct UndoGeometry {
  std::uint64_t blocks = 0;
  std::uint64_t block_bytes = 0;

  std::uint64_t grain_bytes() const { return block_bytes / grains_per_block; }
  std::uint64_t bytes_offset() const;
  std::uint64_t file_bytes() const { return bytes_offset() + blocks * block_bytes; }
};

class UndoLog {
 public:
  UndoLog(std::unique_ptr<Device> device, const UndoGeometry& geometry)
      : device_(std::move(device)), geometry_(geometry) {}

  // Makes room for the slots of a block, without which the others may not be called for it.
  Status prepare_block(std::uint64_t block);
  // Keeps `bytes`, the grain as it is, if it was not kept at `version` yet, under the number
  // `owner`. Returns 0, or the number of another process that is keeping it at this moment.
  Result<std::uint32_t> keep(std::uint64_t block, unsigned grain, std::uint64_t version,
                             const std::byte* bytes, std::uint32_t owner);
  // What `owner`, which has died, was keeping in a block is not kept.
  void give_up(std::uint64_t block, std::uint32_t owner);
  bool kept(std::uint64_t block, unsigned grain, std::uint64_t version) const;

  // Recovery: what the grain held at `version`; null: it was not changed since. Later than
  // `version` is Code::wrong_state.
  Result<const std::byte*> held(std::uint64_t block, unsigned grain, std::uint64_t version) const;

 private:
  UndoFormat& slot(std::uint64_t block, unsigned grain) const;
  Status write_place(std::uint64_t block, unsigned grain, std::uint64_t version,
                     const std::byte* bytes);

  std::unique_ptr<Device> device_;
  UndoGeometry geometry_;
};

}  // namespace perdure
