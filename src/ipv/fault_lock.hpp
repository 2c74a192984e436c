// Fault lock: a lock that a fault handler may take. Its holder never faults on what it protects,
// allocates nothing, and waits for no other lock of the program.
#pragma once

#include <atomic>
#include <cstdint>

namespace perdure {

class FaultLock {
 public:
  void lock() noexcept {
    std::uint32_t seen = 0;
    if (held_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
    while (held_.exchange(2, std::memory_order_acquire) != 0) held_.wait(2);
  }
  void unlock() noexcept {
    if (held_.exchange(0, std::memory_order_release) == 2) held_.notify_all();
  }

 private:
  std::atomic<std::uint32_t> held_{0};  // 1: held, 2: and somebody may wait
};

}  // namespace perdure
