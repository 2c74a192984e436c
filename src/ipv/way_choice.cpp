// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/way_choice.hpp"

#include <algorithm>
#include <utility>

#include "base/assert.hpp"

namespace perdure {
namespace {

void insert_sorted(std::vector<std::uint64_t>& sorted, std::uint64_t value) {
  sorted.insert(std::ranges::upper_bound(sorted, value), value);
}

// Of an even number the lower one.
std::uint64_t median_of(const std::vector<std::uint64_t>& sorted) {
  return sorted[(sorted.size() - 1) / 2];
}

}  // namespace

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
    : possible_(std::move(possible)), counted_(possible_.size()) {
  PERDURE_ASSERT(!possible_.empty());
}

std::uint64_t WayChoice::median_ns(std::size_t way) const {
  const std::vector<std::uint64_t>& sorted = counted_[way].iteration_ns;
  return sorted.empty() ? unknown : median_of(sorted);
}

Way WayChoice::next() {
  if (decided() && possible_.size() > 1 && ++since_decided_ > to_keep_) begin_trials();
  asked_ = true;
  way_ = possible_[decided() ? best_ : turn_ % possible_.size()];
  return way_;
}

void WayChoice::begin_trials() {
  for (Counted& counted : counted_) counted = {};
  turn_ = 0;
  recorded_ = 0;
  turn_spent_ns_ = 0;
  since_decided_ = 0;
}

void WayChoice::record(std::uint64_t iteration_ns, std::uint64_t waited_ns) {
  if (!std::exchange(asked_, false)) return;
  Spent& spent = decided() ? kept_ : trials_;
  ++spent.iterations;
  spent.ns += iteration_ns;
  if (decided()) return;
  if (recorded_++ > 0) {
    Counted& counted = counted_[turn_ % possible_.size()];
    insert_sorted(counted.iteration_ns, iteration_ns);
    insert_sorted(counted.waited_ns, waited_ns);
    turn_spent_ns_ += iteration_ns;
  }
  if (turn_is_over()) end_turn();
}

bool WayChoice::turn_is_over() const {
  if (recorded_ == turn_iterations) return true;
  return recorded_ > 1 && (turn_spent_ns_ >= turn_ns || is_hopeless(turn_ % possible_.size()));
}

// Two of its iterations took a quarter longer than the fastest way's each, or three of them so much
// longer that it has no second turn.
bool WayChoice::is_hopeless(std::size_t way) const {
  const std::vector<std::uint64_t>& sorted = counted_[way].iteration_ns;
  if (way == best_ || sorted.size() < 2) return false;
  return is_far_behind(sorted.front()) || (sorted.size() > 2 && !is_near(sorted.front()));
}

// Whether the program alone waits long enough for a thread to be worth a trial.
bool WayChoice::could_gain() const {
  return median_of(counted_.front().waited_ns) >= median_ns(0) / gained_part;
}

// Up to a tenth longer than the fastest way's.
bool WayChoice::is_near(std::uint64_t iteration_ns) const {
  return iteration_ns <= median_ns(best_) / 10 * 11;
}

// In the first round the thread, if it may gain; in the second both, if they are near each other.
bool WayChoice::has_turn(std::size_t turn) const {
  if (turn < possible_.size()) return could_gain();
  return is_near(median_ns(0)) && is_near(median_ns(1));
}

void WayChoice::end_turn() {
  recorded_ = 0;
  turn_spent_ns_ = 0;
  for (std::size_t way = 0; way < possible_.size(); ++way) {
    if (median_ns(way) < median_ns(best_)) best_ = way;
  }
  do {
    ++turn_;
  } while (!decided() && !has_turn(turn_));
  if (!decided()) return;
  const bool first = to_keep_ == 0;
  to_keep_ = first ? kept_per_trial * trials_.iterations : kept_growth * to_keep_;
  to_keep_ = std::min(to_keep_, most_kept);
}

}  // namespace perdure
