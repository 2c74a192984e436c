// SPDX-License-Identifier: BSD-3-Clause
//
// Way choice: in which tier the objects that leave it open are in the next iteration, and whether a
// thread saves their version beside the program. Each possible way has a turn of a few iterations,
// and those that took little longer than the shortest have another one; then the way of the
// shortest iteration is kept, and rarely all are tried again. An iteration is compared as a whole,
// from persistence point to persistence point: a tier also costs where the program finds its values
// in memory instead of a cache, and a thread where it shares the memory, or a processor, with the
// program. The first iteration of a turn does not count: it pays for the version that the way
// before began, and for the switch. Pure.
#pragma once

#include <cstdint>
#include <vector>

#include "perdure/perdure_ipv.h"

namespace perdure {

using Tier = perdure_ipv_tier;
const char* tier_name(Tier tier);

struct Way {
  Tier tier = PERDURE_IPV_COPY;
  bool beside = false;
  bool operator==(const Way&) const = default;
};

class WayChoice {
 public:
  static constexpr unsigned rounds = 2;             // turns of each way, at most
  static constexpr unsigned turn_iterations = 2;    // of which the last one counts
  static constexpr unsigned kept_iterations = 500;  // until all are tried again
  static constexpr std::uint64_t unknown = ~std::uint64_t{0};

  explicit WayChoice(std::vector<Way> possible);

  // For the next iteration; called once for each.
  Way next();
  // How long the iteration took whose way next() said last.
  void record(std::uint64_t iteration_ns);
  // The shortest iteration of each, in the order of `possible`; unknown: none counted.
  const std::vector<std::uint64_t>& least() const { return least_; }
  const std::vector<Way>& possible() const { return possible_; }
  bool decided() const { return possible_.size() == 1 || turn_ >= rounds * possible_.size(); }
  // How many iterations were trials so far.
  std::uint64_t trials() const { return trials_; }

 private:
  bool worth_a_turn() const;
  std::uint64_t shortest() const;

  std::vector<Way> possible_;
  std::vector<std::uint64_t> least_;
  std::size_t turn_ = 0;
  unsigned handed_ = 0;  // iterations of this turn
  unsigned kept_ = 0;    // iterations since it was decided
  std::uint64_t trials_ = 0;
};

}  // namespace perdure
