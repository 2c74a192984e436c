// SPDX-License-Identifier: BSD-3-Clause
#include "trace/recorder/batches.hpp"

#include <algorithm>
#include <cstdint>

namespace perdure::trace {
namespace {

// The helper wakes up for so many batches, or there would be a system call for each of them.
constexpr std::size_t worth_waking_most = 4;

}  // namespace

Batches::Batches(std::size_t bytes_of_helper)
    : of_helper_(bytes_of_helper / sizeof(WordBatch)),
      worth_waking_(std::clamp<std::size_t>(of_helper_ / 2, 1, worth_waking_most)) {}

Stream& Batches::begin_stream(const Header& header, Stream::Host host) {
  const std::lock_guard handing(handing_);
  if (!idle_.empty()) {
    Stream& stream = *idle_.back();
    idle_.pop_back();
    return stream;
  }
  const auto number = static_cast<std::uint32_t>(streams_.size());
  streams_.push_back(std::make_unique<Stream>(header, number, host));
  return *streams_.back();
}

void Batches::end_stream(Stream& stream) {
  const std::lock_guard handing(handing_);
  idle_.push_back(&stream);
}

void Batches::hand_over(Stream& stream, bool ends_thread) {
  bool wakes = false;
  {
    const std::lock_guard handing(handing_);
    WordBatch* batch = stream.batch();
    if (batch == nullptr) return;
    batch->filled = stream.filled();
    batch->ends_thread = ends_thread;
    stream.set_batch(nullptr);
    full_.push_back(batch);
    wakes = is_helped_ && is_waiting_ && full_.size() >= worth_waking_;
  }
  if (wakes) handed_over_.notify_one();
}

bool Batches::take(Stream& stream) {
  const std::lock_guard handing(handing_);
  if (!free_.empty()) {
    stream.set_batch(free_.back());
    free_.pop_back();
    return true;
  }
  if (batches_.size() >= streams_.size() + (is_helped_ ? of_helper_ : 0)) return false;
  batches_.push_back(std::make_unique_for_overwrite<WordBatch>());
  stream.set_batch(batches_.back().get());
  return true;
}

WordBatch* Batches::next_full() {
  const std::lock_guard handing(handing_);
  if (full_.empty()) return nullptr;
  WordBatch* const batch = full_.front();
  full_.pop_front();
  return batch;
}

void Batches::give_back(WordBatch& batch) {
  const std::lock_guard handing(handing_);
  free_.push_back(&batch);
}

std::size_t Batches::made() {
  const std::lock_guard handing(handing_);
  return batches_.size();
}

void Batches::set_helped(bool helped) {
  const std::lock_guard handing(handing_);
  is_helped_ = helped;
}

bool Batches::await_work() {
  std::unique_lock handing(handing_);
  is_waiting_ = true;
  handed_over_.wait(handing,
                    [&] { return is_stopping_ || (is_helped_ && full_.size() >= worth_waking_); });
  is_waiting_ = false;
  return !is_stopping_;
}

void Batches::stop() {
  {
    const std::lock_guard handing(handing_);
    is_stopping_ = true;
    is_helped_ = false;
  }
  handed_over_.notify_one();
}

}  // namespace perdure::trace
