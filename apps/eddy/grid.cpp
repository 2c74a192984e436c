// SPDX-License-Identifier: BSD-3-Clause
#include "eddy/grid.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "npb/ranks.hpp"

namespace eddy {

namespace ranks = npb::ranks;

Grid make_grid(Index n) {
  if (ranks::count() > n) {
    throw std::runtime_error("can't cut " + std::to_string(n) + " rows into " +
                             std::to_string(ranks::count()) + " slabs; use at most " +
                             std::to_string(n) + " ranks");
  }
  const Index first = ranks::block_begin(n, ranks::rank());
  return {n, first, ranks::block_begin(n, ranks::rank() + 1) - first};
}

void fill_ghosts(const Grid& grid, double* field) {
  const Index n = grid.n;
  for (Index j = 1; j <= grid.rows; ++j) {
    double* row = field + grid.at(0, j);
    row[0] = row[n];
    row[n + 1] = row[1];
  }
  double* first = field + grid.at(0, 1);
  double* last = field + grid.at(0, grid.rows);
  ranks::swap_with_neighbours(first, last, first - grid.row(), last + grid.row(), grid.row());
}

Array<double> make_field(const Grid& grid, npb::Use use) {
  Array<double> field(grid.size(), use);
  std::fill(field.get(), field.get() + grid.size(), 0.0);
  return field;
}

}  // namespace eddy
