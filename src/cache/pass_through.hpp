// SPDX-License-Identifier: BSD-3-Clause
//
// Pass-through: reads and writes of the cached file itself, for the blocks of a part that got no
// room (P16 of cache_part.hpp).
//
// A write is a change of the file as any other (P14). When write() returns, the kernel has the
// bytes, which survive the process; if `durable`, the file has them.
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

  Status read(std::uint64_t offset, void* to, std::uint64_t bytes);
  Status write(std::uint64_t offset, const void* from, std::uint64_t bytes, bool durable);
  // All that any process of the node wrote is durable.
  Status sync();

  // Read and written by this process.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  ChangeRecord& changes_;
  const BackingFile* file_ = nullptr;
  std::atomic<std::uint64_t> bytes_{0};
};

}  // namespace perdure
