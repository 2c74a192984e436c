// SPDX-License-Identifier: BSD-3-Clause
//
// Atomic-mode lock: the lock of a file in atomic mode, of one process's threads.
//
// Invariants
//   mpiio.L1  Whoever has the lock of the file's first part for this process has its mutex as well:
//       the part tells processes from each other, and not their threads.
//
// Threads: any. Failure: that of the part.
#pragma once

#include <cstdint>
#include <mutex>

#include "base/status.hpp"
#include "cache/part_access.hpp"

namespace perdure {

class AtomicModeLock {
 public:
  // `owner` is not 0, and no other process of the file's has it.
  void set_owner(std::uint64_t owner) { owner_ = owner; }
  // Between the threads of a process first, then between processes. Whoever waits gives way.
  Status lock(PartAccess& first) {
    std::unique_lock<std::mutex> mine(mutex_);
    while (true) {
      PERDURE_TRY_ASSIGN(const bool granted, first.try_lock(owner_));
      if (granted) break;
      first.give_way();
    }
    mine.release();  // unlock() does that
    return Status::success();
  }
  // The mutex is free afterwards also where the part can't be reached.
  Status unlock(const Result<PartAccess*>& first) {
    const std::unique_lock<std::mutex> mine(mutex_, std::adopt_lock);
    PERDURE_TRY(first.status());
    return first.value()->unlock(owner_);
  }

 private:
  std::uint64_t owner_ = 0;
  std::mutex mutex_;
};

}  // namespace perdure
