// Fault lock: a lock that a fault handler may take. Its holder never faults on what it protects,
// allocates nothing, and waits for no other lock of the program.
#pragma once

#include <atomic>
#include <cstdint>

namespace perdure {

class FaultLock {
 public:
  void lock() noexcept {
    while (held_.exchange(1, std::memory_order_acquire) != 0) held_.wait(1);
  }
  void unlock() noexcept {
    held_.store(0, std::memory_order_release);
    held_.notify_one();
  }

 private:
  std::atomic<std::uint32_t> held_{0};
};

}  // namespace perdure
