// SPDX-License-Identifier: BSD-3-Clause
//
// Fault lock: a lock that a fault handler may take. Its holder never faults on what it protects,
// allocates nothing, and waits for no other lock of the program.
//
// One thread can be favoured. It locks with two stores and a load, without a fence: a hook comes
// once a row, and a fence there would wait until all stores of the row before have reached the
// cache. The others pay for it, by a thread barrier (Dekker's rule: the favoured thread
// stores inside_ and loads wanted_, another stores wanted_, has the barrier, and loads inside_, so
// one of them sees the other; and only one of the others, the one that has held_, tries).
#pragma once

#include <sched.h>

#include <atomic>
#include <cstdint>

#include "base/this_thread.hpp"
#include "ipv/thread_barrier.hpp"

namespace perdure {

class FaultLock {
 public:
  // Before any other thread may lock. Without thread barriers nobody is favoured.
  void favour_this_thread() noexcept {
    if (join_thread_barriers() && thread_barrier()) {
      favoured_.store(this_thread(), std::memory_order_release);
    }
  }

  void lock() noexcept {
    const std::uintptr_t favoured = favoured_.load(std::memory_order_relaxed);
    const bool is_favoured = favoured == this_thread();
    if (is_favoured && enter()) return;
    hold();
    if (favoured != 0 && !is_favoured) keep_out();
  }
  void unlock() noexcept {
    const std::uintptr_t favoured = favoured_.load(std::memory_order_relaxed);
    if (favoured == this_thread()) {
      if (inside_.load(std::memory_order_relaxed) != 0) {
        inside_.store(0, std::memory_order_release);
        return;
      }
    } else if (favoured != 0) {
      wanted_.store(0, std::memory_order_release);
    }
    if (held_.exchange(0, std::memory_order_release) == 2) held_.notify_all();
  }

 private:
  bool enter() noexcept {
    inside_.store(1, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (wanted_.load(std::memory_order_acquire) == 0) return true;
    inside_.store(0, std::memory_order_release);
    return false;
  }
  void hold() noexcept {
    std::uint32_t seen = 0;
    if (held_.compare_exchange_strong(seen, 1, std::memory_order_acquire)) return;
    while (held_.exchange(2, std::memory_order_acquire) != 0) held_.wait(2);
  }
  void keep_out() noexcept {
    wanted_.store(1, std::memory_order_relaxed);
    (void)thread_barrier();  // it worked when the thread was favoured
    while (inside_.load(std::memory_order_acquire) != 0) ::sched_yield();
  }

  std::atomic<std::uint32_t> held_{0};       // 1: held, 2: and somebody may wait
  std::atomic<std::uint32_t> inside_{0};     // the favoured thread has the lock, without held_
  std::atomic<std::uint32_t> wanted_{0};     // by another thread, which has held_
  std::atomic<std::uintptr_t> favoured_{0};  // this_thread() of it; 0: none
};

}  // namespace perdure
