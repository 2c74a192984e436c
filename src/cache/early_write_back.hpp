// SPDX-License-Identifier: BSD-3-Clause
//
// Early write-back: hands what is dirty in a part to the cached file while the processes compute,
// so that little is left to be written when the file is closed.
//
// A thread of each process that writes much, at the lowest priority: where all processors are busy
// it gets a seventieth of one, where one is idle all of it. It changes nothing that a write-back
// would not: what it hands over is leaving (cache.P4) until somebody synchronises the file.
//
// What it writes: a block in which no further grain became dirty since it looked last. Grains that
// are dirty and written again look the same, so a block may be written in vain; each time that it
// was, its turn comes after twice as many looks. So a block that a program writes again and again
// costs less and less, and is left to the close.
//
// Where blocks pass through it rests, as they are read and written under the file's lock.
//
// Threads: making and destroying it by one thread. Failure: none here; it ends, and what it could
// not hand over is dirty, so that the next write-back says why.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "cache/cache_part.hpp"

namespace perdure {

class EarlyWriteBack {
 public:
  static constexpr std::uint64_t least_bytes = std::uint64_t{16} << 20;
  struct Terms {
    std::uint64_t least = least_bytes;     // of a part that is worth a look
    std::uint64_t period_ns = 50'000'000;  // from one look to the next
  };

  // `turn`: as in CachePart::write_back(). The part outlives it, with its backing. Null: there is
  // no thread to be had.
  static std::unique_ptr<EarlyWriteBack> start(CachePart& part, std::uint64_t turn,
                                               const Terms& terms);
  static std::unique_ptr<EarlyWriteBack> start(CachePart& part, std::uint64_t turn) {
    return start(part, turn, Terms());
  }
  ~EarlyWriteBack() { stop(); }
  // For good; waits for the block that is being written.
  void stop();
  EarlyWriteBack(const EarlyWriteBack&) = delete;
  EarlyWriteBack& operator=(const EarlyWriteBack&) = delete;

  std::uint64_t written_bytes() const { return written_bytes_.load(std::memory_order_relaxed); }

 private:
  // What was seen of a block at the last look.
  struct Seen {
    Grains dirty{};
    std::uint32_t patience = 1;  // looks for which it has to stay as it is
    std::uint32_t left = 1;      // of those
  };

  EarlyWriteBack(CachePart& part, std::uint64_t turn, const Terms& terms)
      : part_(part), turn_(turn), terms_(terms) {}
  void run();
  bool rest(std::uint64_t ns);
  bool is_stopped() const { return stopped_.load(std::memory_order_acquire); }
  Status look(bool& any_dirty);
  static bool has_cooled(Seen& seen, const Grains& dirty);

  CachePart& part_;
  std::uint64_t turn_;
  Terms terms_;
  std::vector<Seen> seen_;  // by block
  std::atomic<std::uint64_t> written_bytes_{0};
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable stop_;
  std::thread thread_;  // last: it uses what is above
};

// The one of a cached file, which begins once, by whoever accesses the file, until it is ended.
class EarlyWriter {
 public:
  // Or there is no thread to be had.
  bool has_begun() const { return begun_.load(std::memory_order_relaxed); }
  // `start` gives an EarlyWriteBack, or null.
  template <class Start>
  void begin(const Start& start) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!begun_.exchange(true)) running_ = start();
  }
  std::unique_ptr<EarlyWriteBack> end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    begun_.store(false);
    return std::move(running_);
  }

 private:
  std::atomic<bool> begun_{false};
  std::mutex mutex_;
  std::unique_ptr<EarlyWriteBack> running_;
};

}  // namespace perdure
