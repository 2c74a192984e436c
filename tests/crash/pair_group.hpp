// Two ranks as threads, and which moments of theirs can be those of one crash.
#pragma once

#include <algorithm>
#include <array>
#include <barrier>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
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

// Bytes on their way to a rank. Sending waits for nobody.
class Mailbox {
 public:
  void put(std::span<const std::byte> bytes) {
    const std::lock_guard<std::mutex> lock(mutex_);
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    arrived_.notify_all();
  }
  void take(std::span<std::byte> bytes) {
    std::unique_lock<std::mutex> lock(mutex_);
    arrived_.wait(lock, [&] { return bytes_.size() >= bytes.size(); });
    const auto end = bytes_.begin() + static_cast<std::ptrdiff_t>(bytes.size());
    std::copy(bytes_.begin(), end, bytes.begin());
    bytes_.erase(bytes_.begin(), end);
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<std::byte> bytes_;
};

struct PairExchange {
  std::barrier<> barrier{2};
  std::array<std::vector<std::uint64_t>, 2> values;
  std::array<Mailbox, 2> to_rank;
  std::shared_ptr<PairExchange> of_part;  // of the group that was split off last
};

class PairGroup final : public Group {
 public:
  PairGroup(PairExchange& exchange, std::uint32_t rank) : exchange_(exchange), rank_(rank) {}
  PairGroup(std::shared_ptr<PairExchange> exchange, std::uint32_t rank)
      : owned_(std::move(exchange)), exchange_(*owned_), rank_(rank) {}
  std::uint32_t rank() const override { return rank_; }
  std::uint32_t ranks() const override { return 2; }
  Status all_max(std::span<std::uint64_t> values) override {
    ++agreements.entered;
    if (on_enter) on_enter();
    exchange_.values[rank_].assign(values.begin(), values.end());
    exchange_.barrier.arrive_and_wait();
    const auto& other = exchange_.values[1 - rank_];
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = std::max(values[i], other[i]);
    exchange_.barrier.arrive_and_wait();
    ++agreements.passed;
    return Status::success();
  }

  // Messages are no agreements: a moment between them may be one of a crash.
  Status send(std::uint32_t to, std::span<const std::byte> bytes) override {
    PERDURE_TRY(check_other(to));
    exchange_.to_rank[to].put(bytes);
    return Status::success();
  }
  Status receive(std::uint32_t from, std::span<std::byte> bytes) override {
    PERDURE_TRY(check_other(from));
    exchange_.to_rank[rank_].take(bytes);
    return Status::success();
  }
  Result<std::unique_ptr<Group>> split(std::uint32_t part) override {
    if (rank_ == 0) exchange_.of_part = std::make_shared<PairExchange>();
    std::array<std::uint64_t, 2> parts{part, ~std::uint64_t{part}};
    PERDURE_TRY(all_max(parts));  // the largest, and what tells the smallest
    const auto of_part = exchange_.of_part;
    PERDURE_TRY(all_max({}));  // nobody splits again before the other has it
    if (parts[0] != ~parts[1]) return std::unique_ptr<Group>(std::make_unique<SoloGroup>());
    return std::unique_ptr<Group>(std::make_unique<PairGroup>(of_part, rank_));
  }

  Agreements agreements;
  std::function<void()> on_enter;

 private:
  std::shared_ptr<PairExchange> owned_;  // of a group that was split off
  PairExchange& exchange_;
  std::uint32_t rank_;
};

}  // namespace perdure
