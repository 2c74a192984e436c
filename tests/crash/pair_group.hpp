// Two ranks as threads, and which moments of theirs can be those of one crash.
#pragma once

#include <algorithm>
#include <array>
#include <barrier>
#include <cstdint>
#include <functional>
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

struct PairExchange {
  std::barrier<> barrier{2};
  std::array<std::vector<std::uint64_t>, 2> values;
};

class PairGroup final : public Group {
 public:
  PairGroup(PairExchange& exchange, std::uint32_t rank) : exchange_(exchange), rank_(rank) {}
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

  Agreements agreements;
  std::function<void()> on_enter;

 private:
  PairExchange& exchange_;
  std::uint32_t rank_;
};

}  // namespace perdure
