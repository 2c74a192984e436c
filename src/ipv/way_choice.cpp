// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/way_choice.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace perdure {

const char* tier_name(Tier tier) {
  switch (tier) {
    case PERDURE_IPV_AUTO:
      return "auto";
    case PERDURE_IPV_COPY:
      return "copy";
    case PERDURE_IPV_STREAM:
      return "stream";
  }
  return "unknown";
}

WayChoice::WayChoice(std::vector<Way> possible)
    : possible_(std::move(possible)), least_(possible_.size(), unknown) {
  PERDURE_ASSERT(!possible_.empty());
}

std::uint64_t WayChoice::shortest() const {
  return *std::min_element(least_.begin(), least_.end());
}

// In its second turn if its first took up to a tenth longer than the shortest.
bool WayChoice::worth_a_turn() const {
  return turn_ < possible_.size() || least_[turn_ % possible_.size()] <= shortest() / 10 * 11;
}

Way WayChoice::next() {
  if (possible_.size() == 1) return possible_.front();
  if (handed_ == turn_iterations && !decided()) {
    handed_ = 0;
    do {
      ++turn_;
    } while (!decided() && !worth_a_turn());
  }
  if (decided() && ++kept_ > kept_iterations) {
    kept_ = handed_ = 0;
    turn_ = 0;
    std::fill(least_.begin(), least_.end(), unknown);
  }
  if (!decided()) {
    ++handed_;
    ++trials_;
    return possible_[turn_ % possible_.size()];
  }
  const auto best = std::min_element(least_.begin(), least_.end());
  return possible_[static_cast<std::size_t>(best - least_.begin())];
}

void WayChoice::record(std::uint64_t iteration_ns) {
  if (decided() || handed_ != turn_iterations) return;
  std::uint64_t& least = least_[turn_ % possible_.size()];
  least = std::min(least, iteration_ns);
}

}  // namespace perdure
