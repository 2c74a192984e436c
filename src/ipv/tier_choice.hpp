// SPDX-License-Identifier: BSD-3-Clause
//
// Tier choice: which tier an object in tier AUTO uses in its next iteration. Each possible one has
// a turn of a few iterations, and those that took little longer than the shortest have another one;
// then the tier of the shortest iteration is kept, and rarely all are tried again. An iteration is
// compared as a whole, from persistence point to persistence point: a tier also costs where the
// program finds its values in memory instead of a cache, or shares the memory with a thread beside.
// The first iteration of a turn does not count: it pays for the version that the tier before began,
// and for the switch. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/perdure_ipv.h"

namespace perdure {

using Tier = perdure_ipv_tier;
const char* tier_name(Tier tier);

class TierChoice {
 public:
  static constexpr unsigned rounds = 2;             // turns of each tier, at most
  static constexpr unsigned turn_iterations = 2;    // of which the last one counts
  static constexpr unsigned kept_iterations = 500;  // until all are tried again
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  explicit TierChoice(std::vector<Tier> possible);

  // For the next iteration; called once for each.
  Tier next();
  // How long the iteration took whose tier next() said last.
  void record(std::uint64_t iteration_ns);
  // The shortest iteration of each, in the order of `possible`; unknown: none counted.
  const std::vector<std::uint64_t>& least() const { return least_; }
  const std::vector<Tier>& possible() const { return possible_; }
  bool decided() const { return turn_ >= rounds * possible_.size(); }

 private:
  bool worth_a_turn() const;
  std::uint64_t shortest() const;

  std::vector<Tier> possible_;
  std::vector<std::uint64_t> least_;
  std::size_t turn_ = 0;
  unsigned handed_ = 0;  // iterations of this turn
  unsigned kept_ = 0;    // iterations since it was decided
};

}  // namespace perdure
