// SPDX-License-Identifier: BSD-3-Clause
//
// Page tracker: finds the blocks of a buffer that the application stores into, by write-protecting
// them and catching the fault of the first store to each.
//
// The buffer must be page-aligned and have its last page to itself, and a block must be a multiple
// of the page size. It stays mapped until the tracker is gone. A fault elsewhere goes
// to the handler that was there before. Stores made by the kernel on the application's behalf
// (read(), and the single-copy transports of MPI libraries) into a protected block fail with EFAULT
// instead of being tracked: receive into another buffer, or use PERDURE_MARKS.
//
// Threads: stores may come from any thread; watch() and collect() from the thread of the pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"

namespace perdure {

struct TrackedRange;

class PageTracker {
 public:
  // At most 256 ranges are tracked at a time in a process.
  static Result<std::unique_ptr<PageTracker>> create(std::byte* base, std::size_t size_bytes,
                                                     std::size_t block_bytes);
  ~PageTracker();  // lifts the protection
  PageTracker(const PageTracker&) = delete;
  PageTracker& operator=(const PageTracker&) = delete;

  // Protects the whole buffer; nothing counts as changed from here on.
  Status watch();

  // Sets changed[b] for each block that was stored into since watch() or the last collect(), and
  // protects those blocks again.
  Status collect(std::vector<std::uint8_t>& changed);

 private:
  explicit PageTracker(TrackedRange* range);
  TrackedRange* range_;
};

}  // namespace perdure
