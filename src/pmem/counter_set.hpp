// SPDX-License-Identifier: BSD-3-Clause
//
// DeviceCounters that several threads add to. Relaxed: they are statistics and order nothing.
#pragma once

#include <atomic>
#include <cstdint>

#include "pmem/device.hpp"

namespace perdure {

class CounterSet {
 public:
  void add_store(std::uint64_t bytes) { add(stored_bytes_, bytes); }
  void add_copy(std::uint64_t bytes) { add(copied_bytes_, bytes); }
  void add_flush(std::uint64_t bytes, std::uint64_t calls = 1) {
    add(flushed_bytes_, bytes);
    add(flush_calls_, calls);
  }
  void add_fence() { add(fence_calls_, 1); }

  DeviceCounters read() const {
    DeviceCounters now;
    now.stored_bytes = stored_bytes_.load(std::memory_order_relaxed);
    now.copied_bytes = copied_bytes_.load(std::memory_order_relaxed);
    now.flushed_bytes = flushed_bytes_.load(std::memory_order_relaxed);
    now.flush_calls = flush_calls_.load(std::memory_order_relaxed);
    now.fence_calls = fence_calls_.load(std::memory_order_relaxed);
    return now;
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  static void add(Counter& counter, std::uint64_t amount) {
    counter.fetch_add(amount, std::memory_order_relaxed);
  }

  Counter stored_bytes_{0};
  Counter copied_bytes_{0};
  Counter flushed_bytes_{0};
  Counter flush_calls_{0};
  Counter fence_calls_{0};
};

}  // namespace perdure
