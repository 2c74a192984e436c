// SPDX-License-Identifier: BSD-3-Clause
#include "grid.hpp"

#include <string>

#include "job/collective.hpp"

namespace matpower {

Grid make_grid(std::uint64_t nodes) {
  const int ranks = job::rank_count();
  int side = 1;
  while ((side + 1) * (side + 1) <= ranks) ++side;
  if (side * side != ranks) {
    throw job::SharedError(std::to_string(ranks) + " ranks make no square grid; start " +
                           std::to_string(side * side) + " or " +
                           std::to_string((side + 1) * (side + 1)));
  }
  if (nodes < static_cast<std::uint64_t>(side)) {
    throw job::SharedError("a graph of " + std::to_string(nodes) +
                           " nodes has no block for each of " + std::to_string(ranks) +
                           " ranks; start fewer");
  }
  return {nodes, side, job::this_rank() / side, job::this_rank() % side};
}

}  // namespace matpower
