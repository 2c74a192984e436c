// SPDX-License-Identifier: BSD-3-Clause
//
// DeviceCounters that several threads add to. Relaxed: they are statistics and order nothing.
//
// The thread that made the device, which is most often the only one, adds to counters of its own,
// without locking: a locked instruction waits until all stores past the cache before it have
// reached memory, and the device may be called once for each row. The others share counters.
#pragma once

#include <atomic>
#include <cstdint>

#include "base/this_thread.hpp"
#include "pmem/device.hpp"

namespace perdure {

class CounterSet {
 public:
  void add_store(std::uint64_t bytes) { add(&Counters::stored_bytes, bytes); }
  void add_copy(std::uint64_t bytes) { add(&Counters::copied_bytes, bytes); }
  void add_flush(std::uint64_t bytes, std::uint64_t calls = 1) {
    add(&Counters::flushed_bytes, bytes);
    add(&Counters::flush_calls, calls);
  }
  void add_fence() { add(&Counters::fence_calls, 1); }

  DeviceCounters read() const {
    DeviceCounters now;
    now.stored_bytes = sum_of(&Counters::stored_bytes);
    now.copied_bytes = sum_of(&Counters::copied_bytes);
    now.flushed_bytes = sum_of(&Counters::flushed_bytes);
    now.flush_calls = sum_of(&Counters::flush_calls);
    now.fence_calls = sum_of(&Counters::fence_calls);
    return now;
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  struct alignas(64) Counters {
    Counter stored_bytes{0}, copied_bytes{0}, flushed_bytes{0}, flush_calls{0}, fence_calls{0};
  };

  // A thread that has the word of one that ended comes after it.
  void add(Counter Counters::* which, std::uint64_t amount) {
    if (this_thread() == owner_) {
      Counter& own = own_.*which;
      own.store(own.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
    } else {
      (shared_.*which).fetch_add(amount, std::memory_order_relaxed);
    }
  }
  std::uint64_t sum_of(Counter Counters::* which) const {
    return (own_.*which).load(std::memory_order_relaxed) +
           (shared_.*which).load(std::memory_order_relaxed);
  }

  const std::uintptr_t owner_ = this_thread();
  Counters own_;
  Counters shared_;
};

}  // namespace perdure
