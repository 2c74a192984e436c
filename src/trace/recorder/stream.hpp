// Stream: what one thread of the program recorded and nobody has written yet: its CPU cache, and a
// ring of the accesses of the memory behind it.
//
// Invariants: only the thread that owns the stream calls access(); whoever holds the recorder's
// lock may drain(), whichever thread it is. An access is in the ring exactly once.
// Threads: as said. Failure: none; a ring that is full calls the recorder, which drains it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "trace/cache_filter.hpp"
#include "trace/record.hpp"

namespace perdure::trace {

class Stream {
 public:
  // `make_room` is called by the owner where its ring is full, and must drain it.
  using MakeRoom = void (*)(void* context);

  Stream(const Header& header, unsigned page_shift, std::uint32_t number, MakeRoom make_room,
         void* context)
      : filter_(header.cache, header.mode, push, this),
        page_shift_(page_shift),
        number_(number),
        make_room_(make_room),
        context_(context) {}

  void access(std::uint64_t address, std::uint64_t bytes, bool is_write) {
    filter_.access(address, bytes, is_write);
  }

  std::uint32_t number() const { return number_; }
  const CacheFilter& filter() const { return filter_; }

  // Hands over what is in the ring, oldest first: consume(page number, is_write).
  template <typename Consume>
  void drain(Consume consume) {
    const std::uint32_t head = head_.load(std::memory_order_acquire);
    std::uint32_t tail = tail_.load(std::memory_order_relaxed);
    for (; tail != head; ++tail) {
      const std::uint64_t entry = ring_[tail & (ring_size - 1)];
      consume(entry >> 1U, (entry & 1U) != 0);
    }
    tail_.store(tail, std::memory_order_release);
  }

 private:
  static constexpr std::uint32_t ring_size = 1U << 14U;

  static void push(void* context, std::uint64_t address, bool is_write) {
    auto& self = *static_cast<Stream*>(context);
    const std::uint32_t head = self.head_.load(std::memory_order_relaxed);
    if (head - self.tail_.load(std::memory_order_acquire) == ring_size) [[unlikely]] {
      self.make_room_(self.context_);
    }
    const std::uint64_t page = address >> self.page_shift_;
    self.ring_[head & (ring_size - 1)] = page << 1U | (is_write ? 1U : 0U);
    self.head_.store(head + 1, std::memory_order_release);
  }

  CacheFilter filter_;
  std::unique_ptr<std::uint64_t[]> ring_ = std::make_unique<std::uint64_t[]>(ring_size);
  std::atomic<std::uint32_t> head_ = 0;
  std::atomic<std::uint32_t> tail_ = 0;
  unsigned page_shift_;
  std::uint32_t number_;
  MakeRoom make_room_;
  void* context_;
};

}  // namespace perdure::trace
