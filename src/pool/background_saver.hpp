// SPDX-License-Identifier: BSD-3-Clause
//
// Background saver: one thread that saves arrays while the application computes.
//
// Threads: start() and the waits are called from the pool's thread. The thread touches only the
// arrays handed to start(), in their order, and fences its own stores (device.hpp, pmem.D4), all
// under the token, if there is one; it never calls the group.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/io_token.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

class BackgroundSaver {
 public:
  BackgroundSaver(Device& device, IoToken* token);
  ~BackgroundSaver();  // finishes what was started

  void start(const std::vector<VersionedArray*>& arrays);
  // Returns when `array` (or all) of the last start() has been saved, or saving failed.
  void wait_for(const VersionedArray& array);
  void wait_until_idle();
  // Waits; the outcome of the last start() and the bytes written.
  Status wait_all(std::uint64_t& bytes);

 private:
  void run();
  void save_all();

  Device& device_;
  IoToken* token_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<VersionedArray*> arrays_;
  std::size_t saved_ = 0;  // arrays [0, saved_) are done
  bool busy_ = false;
  bool stop_ = false;
  Status status_;
  std::uint64_t bytes_ = 0;
  std::thread thread_;
};

}  // namespace perdure
