// SPDX-License-Identifier: BSD-3-Clause
//
// Distances: lengths of shortest paths between all pairs of nodes, as far as the powers reach. The
// distance from i to j is the smallest m with a walk of m steps (the paper, section 3.3).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "adjacency.hpp"
#include "grid.hpp"

namespace matpower {

struct DistanceSummary {
  std::vector<std::uint64_t> pairs;  // pairs[m - 1]: ordered pairs of nodes m apart
  std::uint64_t beyond = 0;          // pairs that are further apart, or not connected
  // The least and largest eccentricity, of nodes that reach all others; none if there is none such.
  std::optional<std::uint64_t> radius, diameter;
  std::uint64_t reach_all = 0;  // how many of them there are
};

class Distances {
 public:
  Distances(const Block& own, std::uint64_t power_max);

  // The cells of the own block of a power; powers come in order.
  void take(std::uint64_t power, const Cell* cells);

  // Collective: the distance between two nodes, 0 if they are one, none if it isn't known.
  std::optional<std::uint64_t> between(std::uint64_t from, std::uint64_t to) const;

  // Collective.
  DistanceSummary summary(const Grid& grid) const;

 private:
  Block own_;
  std::uint64_t power_max_;
  std::vector<std::uint32_t> lengths_;  // of the own block; 0: not known
};

}  // namespace matpower
