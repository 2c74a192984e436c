// SPDX-License-Identifier: BSD-3-Clause
//
// Pass-through: reads and writes of the cached file itself, for the blocks of a part that got no
// room (block_table.hpp says which these are).
//
//   cache.P19 The bytes of such a block are in the cached file only: nothing of it is ever dirty,
//       leaving or kept, so that neither write-back nor recovery stores anything older over them. A
//       write to it is a change of the file (cache.P14), intended first if it is small (cache.P3),
//       and acknowledged when the kernel has it, or, if durable, the file. A process that dies in
//       the middle leaves its change under way, and cache.P15 compares present blocks only: it is
//       not taken for another's. Where any block passes through, which is noted before its first
//       write, a write-back with `sync` and persist() wait for the file. A file that is committed
//       with a pool has no such block, because cache.P8 could not be kept: there it stays an error.
//
// Threads: any. Failure: what the file system says; some of the bytes may be written.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/change_record.hpp"

namespace perdure {

class PassThrough {
 public:
  explicit PassThrough(ChangeRecord& changes) : changes_(changes) {}
  void set_file(const BackingFile* file) { file_ = file; }

  Status read(std::uint64_t offset, void* to, std::uint64_t bytes) {
    count(bytes);
    return file_->read(offset, to, bytes);
  }
  Status write(std::uint64_t offset, const void* from, std::uint64_t bytes, bool durable);
  // All that any process of the node wrote is durable.
  Status sync();

  // Read and written by this process; of threads that meet some may be lost.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  void count(std::uint64_t bytes) {
    bytes_.store(bytes_.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }

  ChangeRecord& changes_;
  const BackingFile* file_ = nullptr;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace perdure
