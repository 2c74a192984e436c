// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks as threads of one process, with nodes as wished, and which moments of theirs can be those
// of one crash.
//
// A test can end the job (ThreadJob::end()): every call that waits, and every later one, then fails
// with Code::peer_failed, so that each rank returns from where it was, as if it had been killed.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/group.hpp"

namespace perdure {

// How many agreements a rank had entered and left.
struct Agreements {
  std::uint64_t entered = 0;
  std::uint64_t passed = 0;
};

// No rank has left an agreement that the other has not entered.
inline bool consistent_cut(const Agreements& one, const Agreements& other) {
  return one.passed <= other.entered && other.passed <= one.entered;
}

// What the ranks of one job share.
class ThreadJob {
 public:
  explicit ThreadJob(std::uint32_t ranks) : ThreadJob(std::vector<std::uint32_t>(ranks, 0)) {}
  // The node of each rank.
  explicit ThreadJob(std::vector<std::uint32_t> nodes) : nodes_(std::move(nodes)) {}

  std::uint32_t ranks() const { return static_cast<std::uint32_t>(nodes_.size()); }
  const std::vector<std::uint32_t>& nodes() const { return nodes_; }

  void end() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended_ = true;
    changed_.notify_all();
  }
  bool ended() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return ended_;
  }

  // Runs `body` for each rank, in a thread of its own.
  template <typename Body>
  void run(const Body& body);

 private:
  friend class ThreadGroup;
  struct Maximum {
    std::vector<std::uint64_t> values;
    std::uint32_t entered = 0;
    bool equally_long = true;
  };
  using Channel = std::tuple<std::uint32_t, std::uint32_t, bool>;  // from, to, started

  static Status ended_status() { return {Code::peer_failed, "the job was ended"}; }
  // The n-th maximum of the job: contributes, and returns its number.
  std::uint64_t enter(std::uint32_t rank, std::span<const std::uint64_t> values);
  bool ready(std::uint64_t number) const {
    const auto found = maxima_.find(number);
    return found != maxima_.end() && found->second.entered == ranks();
  }

  std::vector<std::uint32_t> nodes_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::map<std::uint32_t, std::uint64_t> numbers_;  // of the next maximum of each rank
  std::map<std::uint64_t, Maximum> maxima_;
  std::map<Channel, std::deque<std::vector<std::byte>>> messages_;
  std::map<Channel, std::uint64_t> received_;  // of a channel's messages
};

class ThreadGroup final : public Group {
 public:
  ThreadGroup(ThreadJob& job, std::uint32_t rank) : job_(job), rank_(rank) {}
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return job_.ranks(); }
  bool may_be_used_beside() const override { return true; }

  Status all_max(std::span<std::uint64_t> values) override {
    ++agreements.entered;
    if (on_enter) on_enter();
    std::unique_lock<std::mutex> lock(job_.mutex_);
    const bool enters = !job_.ended_;  // else others would pass, for whom this rank is dead
    const std::uint64_t number = enters ? job_.enter(rank_, values) : 0;
    job_.changed_.wait(lock, [&] { return job_.ended_ || job_.ready(number); });
    if (!enters || !job_.ready(number)) {
      lock.unlock();
      if (on_ended) on_ended();
      return ThreadJob::ended_status();
    }
    PERDURE_TRY(take(number, values));
    ++agreements.passed;
    return Status::success();
  }
  // Messages are no agreements: a moment between them may be one of a crash.
  Status send(std::uint32_t to, std::span<const std::byte> bytes) override {
    PERDURE_TRY(check_other(to));
    return put({rank_, to, false}, bytes);
  }
  Status receive(std::uint32_t from, std::span<std::byte> bytes) override {
    PERDURE_TRY(check_other(from));
    const ThreadJob::Channel channel{from, rank_, false};
    std::unique_lock<std::mutex> lock(job_.mutex_);
    auto& queue = job_.messages_[channel];
    job_.changed_.wait(lock, [&] { return job_.ended_ || !queue.empty(); });
    if (queue.empty()) return ThreadJob::ended_status();
    return pop(queue, bytes);
  }
  Result<std::unique_ptr<Transfer>> start_send(std::uint32_t to,
                                               std::span<const std::byte> bytes) override {
    PERDURE_TRY(check_other(to));
    PERDURE_TRY(put({rank_, to, true}, bytes));
    return std::unique_ptr<Transfer>(new Polled([] { return Result<bool>(true); }));
  }
  Result<std::unique_ptr<Transfer>> start_receive(std::uint32_t from,
                                                  std::span<std::byte> bytes) override {
    PERDURE_TRY(check_other(from));
    const ThreadJob::Channel channel{from, rank_, true};
    const std::uint64_t turn = turns_[channel]++;
    return std::unique_ptr<Transfer>(new Polled([this, channel, turn, bytes]() -> Result<bool> {
      const std::lock_guard<std::mutex> lock(job_.mutex_);
      auto& queue = job_.messages_[channel];
      if (job_.received_[channel] != turn || queue.empty()) {
        if (job_.ended_) return ThreadJob::ended_status();
        return false;
      }
      PERDURE_TRY(pop(queue, bytes));
      ++job_.received_[channel];
      return true;
    }));
  }
  Result<std::unique_ptr<Transfer>> start_all_max(std::span<std::uint64_t> values) override {
    const std::lock_guard<std::mutex> lock(job_.mutex_);
    const std::uint64_t number = job_.enter(rank_, values);
    return std::unique_ptr<Transfer>(new Polled([this, number, values]() -> Result<bool> {
      const std::lock_guard<std::mutex> held(job_.mutex_);
      if (!job_.ready(number)) {
        if (job_.ended_) return ThreadJob::ended_status();
        return false;
      }
      PERDURE_TRY(take(number, values));
      return true;
    }));
  }
  Result<std::vector<std::uint32_t>> nodes() override { return job_.nodes(); }

  Agreements agreements;
  std::function<void()> on_enter;
  std::function<void()> on_ended;  // all_max() has met nobody

 private:
  // Keeps what it found out: done() may be called again.
  class Polled final : public Transfer {
   public:
    explicit Polled(std::function<Result<bool>()> poll) : poll_(std::move(poll)) {}
    Result<bool> done() override {
      if (done_) return true;
      auto polled = poll_();
      done_ = polled.ok() && polled.value();
      return polled;
    }

   private:
    std::function<Result<bool>()> poll_;
    bool done_ = false;
  };

  // A message library pairs what is equally long; anything may happen with the rest.
  Status take(std::uint64_t number, std::span<std::uint64_t> values) const {
    const ThreadJob::Maximum& maximum = job_.maxima_.at(number);
    if (!maximum.equally_long) return {Code::peer_failed, "ranks gave other numbers of words"};
    std::ranges::copy(maximum.values, values.begin());
    return Status::success();
  }
  Status put(const ThreadJob::Channel& channel, std::span<const std::byte> bytes) {
    const std::lock_guard<std::mutex> lock(job_.mutex_);
    if (job_.ended_) return ThreadJob::ended_status();
    job_.messages_[channel].emplace_back(bytes.begin(), bytes.end());
    job_.changed_.notify_all();
    return Status::success();
  }
  static Status pop(std::deque<std::vector<std::byte>>& queue, std::span<std::byte> bytes) {
    const auto message = std::move(queue.front());
    queue.pop_front();
    if (message.size() != bytes.size()) {
      return {Code::io_error, "a message of " + std::to_string(message.size()) +
                                  " bytes arrived where " + std::to_string(bytes.size()) +
                                  " were expected"};
    }
    std::copy(message.begin(), message.end(), bytes.begin());
    return Status::success();
  }

  ThreadJob& job_;
  std::uint32_t rank_;
  std::map<ThreadJob::Channel, std::uint64_t> turns_;
};

inline std::uint64_t ThreadJob::enter(std::uint32_t rank, std::span<const std::uint64_t> values) {
  const std::uint64_t number = numbers_[rank]++;
  Maximum& maximum = maxima_[number];
  if (maximum.entered == 0) maximum.values.resize(values.size());
  if (maximum.values.size() != values.size()) maximum.equally_long = false;
  for (std::size_t i = 0; i < std::min(maximum.values.size(), values.size()); ++i) {
    maximum.values[i] = std::max(maximum.values[i], values[i]);
  }
  ++maximum.entered;
  changed_.notify_all();
  return number;
}

template <typename Body>
void ThreadJob::run(const Body& body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 1; rank < ranks(); ++rank) {
    threads.emplace_back([this, &body, rank] {
      ThreadGroup group(*this, rank);
      body(group);
    });
  }
  ThreadGroup group(*this, 0);
  body(group);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace perdure
