// SPDX-License-Identifier: BSD-3-Clause
//
// Fault tracker: finds stored-into blocks of 64 KiB of a buffer by write-protecting them and
// catching the fault of the first store to each. For kernels that do not tell written pages.
//
// A fault elsewhere goes to the handler that was there before. Stores that the kernel makes on the
// application's behalf (read(), and the single-copy transports of MPI libraries) into a protected
// block fail with EFAULT, and a thread that blocks SIGSEGV ends the process at its first store.
#pragma once

#include "pool/page_tracker.hpp"

namespace perdure {

struct TrackedRange;

class FaultTracker final : public PageTracker {
 public:
  // Whole pages. At most 256 at a time in a process.
  static Result<std::unique_ptr<PageTracker>> create(std::byte* base, std::size_t size_bytes);
  ~FaultTracker() override;
  // Whether the byte may only look as if it could not be written.
  static bool protects(std::uintptr_t address);
  void expose() override;

 private:
  explicit FaultTracker(TrackedRange& range);
  void unwatch(bool mapped) override;
  Status protect(ByteRange range) override;
  Status release(ByteRange range) override;
  Status take(ByteRange range, PageSet& changed) override;
  void note(ByteRange range, bool touched);

  TrackedRange& range_;
};

}  // namespace perdure
