// Stream: what one thread of the program recorded and nobody has written yet: its CPU cache, and
// the window of the accesses of the memory behind it.
//
// Invariants: only the thread that owns the stream calls access(). flush() takes the recorder's
// lock for granted, and may be called by any thread, as the owner is kept out meanwhile: it says
// that it is inside by a plain store, and who wants to flush makes that visible by membarrier(2),
// so that the owner, who is inside for each access of the memory, pays for no fence. Threads: as
// said. Failure: none; where the window is full the recorder is called to flush it.
#pragma once

#include <atomic>
#include <cstdint>

#include "trace/cache_filter.hpp"
#include "trace/record.hpp"
#include "trace/recorder/window.hpp"

namespace perdure::trace {

// Every thread of the process has passed a memory barrier when it returns.
void barrier_of_all_threads();

class Stream {
 public:
  // Both are called by the owner: its window is full, and must be flushed; another thread is at it,
  // and must be waited for.
  struct Host {
    void (*make_room)(void* context, Stream& stream);
    void (*wait)(void* context);
    void* context;
  };

  Stream(const Header& header, unsigned page_shift, std::uint32_t number, const Host& host)
      : filter_(header.cache, header.mode, push, this),
        window_(header.floor_pages),
        page_shift_(page_shift),
        number_(number),
        host_(host) {}

  void access(std::uint64_t address, std::uint64_t bytes, bool is_write) {
    filter_.access(address, bytes, is_write);
  }

  std::uint32_t number() const { return number_; }
  const CacheFilter& filter() const { return filter_; }

  // consume(page number, reads, writes), oldest first.
  template <typename Consume>
  void flush(Consume consume) {
    is_closed_.store(true, std::memory_order_relaxed);
    barrier_of_all_threads();
    while (is_inside_.load(std::memory_order_acquire)) {
    }
    window_.flush(consume);
    is_closed_.store(false, std::memory_order_release);
  }
  // The same by the owner, who is not inside: it needs no barrier.
  template <typename Consume>
  void flush_own(Consume consume) {
    window_.flush(consume);
  }

 private:
  static void push(void* context, std::uint64_t address, bool is_write) {
    auto& self = *static_cast<Stream*>(context);
    const std::uint64_t page = address >> self.page_shift_;
    self.enter();
    while (!self.window_.add(page, is_write)) [[unlikely]] {
      self.leave();
      self.host_.make_room(self.host_.context, self);
      self.enter();
    }
    self.leave();
  }

  void enter() {
    for (;;) {
      is_inside_.store(true, std::memory_order_relaxed);
      std::atomic_signal_fence(std::memory_order_seq_cst);
      if (!is_closed_.load(std::memory_order_acquire)) [[likely]]
        return;
      leave();
      host_.wait(host_.context);
    }
  }
  void leave() { is_inside_.store(false, std::memory_order_release); }

  CacheFilter filter_;
  Window window_;
  std::atomic<bool> is_inside_ = false;
  std::atomic<bool> is_closed_ = false;
  unsigned page_shift_;
  std::uint32_t number_;
  Host host_;
};

}  // namespace perdure::trace
