// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/flush_thread.hpp"

#include <algorithm>
#include <vector>

#include "base/guests.hpp"
#include "base/this_thread.hpp"
#include "pmem/flush.hpp"

namespace perdure {

FlushThread::FlushThread() : thread_(start_own_thread([this] { run(); })) {}

FlushThread::~FlushThread() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void FlushThread::add(Work work) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    queue_.push_back(std::move(work));
  }
  changed_.notify_all();
}

Status FlushThread::drain() {
  std::unique_lock<std::mutex> lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !busy_; });
  return std::exchange(failure_, Status::success());
}

void FlushThread::run() {
  leave_signals_to_others();
  std::unique_lock<std::mutex> lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stop_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const Work work = std::move(queue_.front());
    queue_.pop_front();
    busy_ = true;
    lock.unlock();
    const Status status = work();
    lock.lock();
    busy_ = false;
    if (failure_.ok()) failure_ = status;
    changed_.notify_all();
  }
}

Status flush_memory(const void* address, std::size_t bytes, unsigned threads) {
  const FlushPrimitives& primitives = flush_primitives();
  const auto* first = static_cast<const std::byte*>(address);
  const std::size_t share =
      (bytes / std::max(threads, 1U) + cache_line_bytes) / cache_line_bytes * cache_line_bytes;
  std::vector<std::thread> others;
  for (std::size_t begin = share; begin < bytes; begin += share) {
    const std::size_t count = std::min(share, bytes - begin);
    others.push_back(start_own_thread([&primitives, first, begin, count] {
      primitives.flush(first + begin, count);
      primitives.fence();
    }));
  }
  primitives.flush(first, std::min(share, bytes));
  primitives.fence();
  for (std::thread& other : others) other.join();
  return Status::success();
}

Status flush_whole_cache() {
  return {Code::unsupported,
          "the whole cache can't be flushed: WBINVD is for the kernel only, most virtual machines "
          "run it as a no-op, and it throws out other jobs' lines; flush lines instead, which "
          "PERDURE_FLUSH=clwb|clflushopt|clflush chooses"};
}

}  // namespace perdure
