// SPDX-License-Identifier: BSD-3-Clause
//
// Target locks: who holds the lock of a rank is the only one to make an accumulate in its window.
//
// They are in memory that the ranks of a machine share. Whoever dies with one leaves it to the
// next: an accumulate may then be there in part, as after any death of its origin. A lock is held
// for some 100 us at most, and nothing is waited for, and no call of MPI made, while it is.
//
// Threads: any. Failure: without shared memory there are none.
#pragma once

#include <mpi.h>
#include <pthread.h>

#include <cstddef>
#include <memory>

namespace perdure {

class TargetLocks {
 public:
  // Collective over the ranks of `comm`, which are of one machine. Null if they can't be had, on
  // all of them.
  static std::unique_ptr<TargetLocks> create(MPI_Comm comm);

  void lock(std::size_t target);
  void unlock(std::size_t target);

 private:
  struct alignas(128) Lock {
    pthread_mutex_t mutex;
  };

  explicit TargetLocks(std::shared_ptr<std::byte> memory) : memory_(std::move(memory)) {}
  pthread_mutex_t* of(std::size_t target) const {
    return &reinterpret_cast<Lock*>(memory_.get())[target].mutex;
  }

  std::shared_ptr<std::byte> memory_;
};

}  // namespace perdure
