// SPDX-License-Identifier: BSD-3-Clause
//
// Flush thread: works off a queue of flushes beside the program, and makes versions there. It is
// the helper thread of the in-place-versioning paper (section 4.2).
//
// Threads: add() and drain() are called by the program's thread. The work runs in the order in
// which it was added, and fences what it wrote (device.hpp, D4). Failure: drain() reports the first
// one since the last drain().
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "base/status.hpp"

namespace perdure {

class FlushThread {
 public:
  using Work = std::function<Status()>;

  FlushThread();
  ~FlushThread();  // finishes what was added
  FlushThread(const FlushThread&) = delete;
  FlushThread& operator=(const FlushThread&) = delete;

  void add(Work work);
  Status drain();

 private:
  void run();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Work> queue_;
  bool busy_ = false;
  bool stop_ = false;
  Status failure_;
  std::thread thread_;
};

// Flushes [address, address + bytes), any memory, with `threads` threads; fences.
Status flush_memory(const void* address, std::size_t bytes, unsigned threads);

// The whole cache hierarchy, as the paper does for large objects.
Status flush_whole_cache();

}  // namespace perdure
