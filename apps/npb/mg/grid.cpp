// SPDX-License-Identifier: BSD-3-Clause
#include "npb/mg/grid.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "npb/ranks.hpp"

namespace npb::mg {
namespace {

constexpr Index page_numbers = 4096 / sizeof(double);

void fill_ghosts_within_planes(const Grid& grid, double* field) {
  const Index n = grid.n;
  const Index row = grid.row();
  for (Index k = 1; k <= grid.planes; ++k) {
    double* plane = field + k * grid.plane();
    for (Index j = 1; j <= n; ++j) {
      plane[j * row] = plane[j * row + n];
      plane[j * row + n + 1] = plane[j * row + 1];
    }
    for (Index i = 0; i < row; ++i) {
      plane[i] = plane[n * row + i];
      plane[(n + 1) * row + i] = plane[row + i];
    }
  }
}

}  // namespace

Hierarchy make_hierarchy(int finest) {
  const Index ranks = ranks::count();
  Hierarchy all;
  all.finest = finest;
  for (int level = finest; level >= 1; --level) {
    Grid& grid = all.grid[static_cast<std::size_t>(level)];
    grid.n = Index{1} << level;
    grid.shared = ranks > 1 && grid.n < 2 * ranks;
    grid.planes = grid.shared ? grid.n : grid.n / ranks;
    grid.first_plane = grid.shared ? 0 : grid.planes * ranks::rank();
    all.start[static_cast<std::size_t>(level)] = all.size;
    all.size += grid.size();
    if (level == finest) all.size += (page_numbers - all.size % page_numbers) % page_numbers;
  }
  const Index n = Index{1} << finest;
  if ((ranks & (ranks - 1)) != 0 || n < 2 * ranks) {
    throw std::runtime_error(
        "can't cut " + std::to_string(n) + " planes into " + std::to_string(ranks) +
        " slabs; use a power of two of ranks, at most " + std::to_string(n / 2));
  }
  return all;
}

void fill_ghosts(const Grid& grid, double* field) {
  fill_ghosts_within_planes(grid, field);
  const Index plane = grid.plane();
  double* first = field + plane;
  double* last = field + grid.planes * plane;
  double* below = field;
  double* above = last + plane;
  if (grid.shared) {
    std::copy(last, last + plane, below);
    std::copy(first, first + plane, above);
  } else {
    ranks::swap_with_neighbours(first, last, below, above, plane);
  }
}

}  // namespace npb::mg
