// SPDX-License-Identifier: BSD-3-Clause
//
// Stream: what one thread of the program recorded and nobody has written yet: its CPU cache, a
// batch of the accesses that missed it, and the window that those go through.
//
// The owner only appends to its batch, a word for each access; entries_x86_64.S does that too,
// without coming here. Everything else happens in the recorder, when a batch is full.
//
// Invariants: only the thread that owns the stream calls access() and moves `next`. Words in front
// of `next` are whole: other threads may read them while the owner goes on. Window and `taken`
// belong to the holder of the recorder's lock of the writer. Threads: as said. Failure: none; where
// there is no room the recorder is called to make some.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "trace/cache_filter.hpp"
#include "trace/record.hpp"
#include "trace/recorder/window.hpp"

namespace perdure::trace {

class Stream;

// Accesses in the order of time: the address of a line and, in the lowest bit, whether it is
// written.
struct WordBatch {
  static constexpr std::size_t words_max = 1024;
  Stream* stream = nullptr;
  std::uint64_t* taken = words;    // what is before it has gone through the window
  std::uint64_t* filled = words;   // of one that was handed over
  bool ends_thread = false;        // the window is to be flushed after it
  std::uint64_t words[words_max];  // not initialised
};

// Where the owner puts an access that misses; entries_x86_64.S knows the places.
struct MissPath {
  std::atomic<std::uint64_t*> next = nullptr;
  std::uint64_t* end = nullptr;  // of the batch; no batch: the same as `next`
};
static_assert(offsetof(MissPath, end) == 8 && sizeof(std::atomic<std::uint64_t*>) == 8);

class Stream {
 public:
  // Called by the owner, whose batch is full; false: there will be no room, the access is not
  // recorded.
  struct Host {
    bool (*make_room)(void* context, Stream& stream);
    void* context;
  };

  Stream(const Header& header, std::uint32_t number, const Host& host)
      : filter_(header.cache, header.mode, push, this),
        window_(header.floor_pages),
        word_shift_(static_cast<unsigned>(std::countr_zero(header.page_bytes))),
        number_(number),
        host_(host) {}

  void access(std::uint64_t address, std::uint64_t bytes, bool is_write) {
    filter_.access(address, bytes, is_write);
  }

  std::uint32_t number() const { return number_; }
  CacheFilter& filter() { return filter_; }
  MissPath& path() { return path_; }
  Window& window() { return window_; }
  unsigned word_shift() const { return word_shift_; }  // of a word to the number of its page

  // By the owner, or by a thread that keeps it out. Null: it has none.
  void set_batch(WordBatch* batch) {
    batch_ = batch;
    path_.end = batch == nullptr ? nullptr : batch->words + WordBatch::words_max;
    path_.next.store(batch == nullptr ? nullptr : batch->words, std::memory_order_release);
    if (batch != nullptr) batch->taken = batch->words;
    if (batch != nullptr) batch->stream = this;
  }
  WordBatch* batch() const { return batch_; }
  std::uint64_t* filled() const { return path_.next.load(std::memory_order_acquire); }

 private:
  static void push(void* context, std::uint64_t address, bool is_write) {
    auto& self = *static_cast<Stream*>(context);
    if (self.path_.next.load(std::memory_order_relaxed) == self.path_.end) [[unlikely]] {
      if (!self.host_.make_room(self.host_.context, self)) return;
    }
    std::uint64_t* const next = self.path_.next.load(std::memory_order_relaxed);
    *next = address | (is_write ? 1U : 0U);
    self.path_.next.store(next + 1, std::memory_order_release);
  }

  MissPath path_;
  WordBatch* batch_ = nullptr;
  CacheFilter filter_;
  Window window_;
  unsigned word_shift_;
  std::uint32_t number_;
  Host host_;
};

}  // namespace perdure::trace
