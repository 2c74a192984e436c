// SPDX-License-Identifier: BSD-3-Clause
//
// Batches: which batch of accesses is whose.
//
// Invariants
//   trace.Q1  A batch is one stream's, which appends to it; or full, and waits to be written; or
//       with the one who writes it; or free.
//   trace.Q2  There are as many as streams, and those of the helper while it helps: memory is
//       bounded, and a thread that finds none free writes one itself.
//   trace.Q3  Streams are numbered from 0 in the order in which threads began; a thread that ended
//       leaves its stream, with cache and number, to the next one, as it would a core.
//
// Threads: all calls; each holds the lock while it looks.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "trace/recorder/stream.hpp"

namespace perdure::trace {

class Batches {
 public:
  // So many bytes are the helper's.
  explicit Batches(std::size_t bytes_of_helper);

  // Of a thread that begins.
  Stream& begin_stream(const Header& header, Stream::Host host);
  // Its batch is full, or its thread ends; it has none then.
  void hand_over(Stream& stream, bool ends_thread);
  // After that.
  void end_stream(Stream& stream);
  // Gives the stream a batch. False: none is free.
  bool take(Stream& stream);
  // The next full one is the caller's, who writes it and gives it back. Null: none is full.
  WordBatch* next_full();
  void give_back(WordBatch& batch);
  std::size_t made();

  // Calls write(batch, end) for what is full, then for what streams have, each of which flush()
  // gets last. No batch changes hands meanwhile.
  template <typename Write, typename Flush>
  void write_all(const Write& write, const Flush& flush) {
    const std::lock_guard handing(handing_);
    for (WordBatch* batch : full_) write(*batch, batch->filled);
    for (const auto& stream : streams_) {
      if (stream->batch() != nullptr) write(*stream->batch(), stream->filled());
      flush(*stream);
    }
  }

  // Of the helper: whether it helps; true when it pays to write, false when it is to end.
  void set_helped(bool helped);
  bool await_work();
  void stop();

  // Around fork(). In a child nobody helps.
  void lock() { handing_.lock(); }
  void unlock() { handing_.unlock(); }
  void abandon() { is_helped_ = false; }

 private:
  const std::size_t of_helper_;  // besides one for each stream
  const std::size_t worth_waking_;

  std::mutex handing_;
  std::condition_variable handed_over_;
  std::vector<std::unique_ptr<WordBatch>> batches_;
  std::vector<WordBatch*> free_;
  std::deque<WordBatch*> full_;
  std::vector<std::unique_ptr<Stream>> streams_;
  std::vector<Stream*> idle_;
  bool is_helped_ = false;
  bool is_waiting_ = false;  // the helper, for batches
  bool is_stopping_ = false;
};

}  // namespace perdure::trace
