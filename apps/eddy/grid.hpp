// SPDX-License-Identifier: BSD-3-Clause
//
// Grid: a periodic square of side 2 pi, of n by n cells, x fastest. A rank has the rows of cells
// from `first` on; a field has a layer of ghosts around them, so that cell (i, j) of the rank
// counts from 1.
//
// Fields are staggered: the pressure of a cell is at its centre, vx at its left side, vy at its
// lower side.
#pragma once

#include <numbers>

#include "npb/array.hpp"

namespace eddy {

using npb::Array;
using npb::Index;

struct Grid {
  Index n = 0;      // cells in each direction
  Index first = 0;  // row of this rank, counted from 0
  Index rows = 0;   // of this rank

  double h() const { return 2 * std::numbers::pi / static_cast<double>(n); }
  Index row() const { return n + 2; }
  Index at(Index i, Index j) const { return j * row() + i; }
  Index size() const { return row() * (rows + 2); }
};

// Throws std::runtime_error if there are more ranks than rows.
Grid make_grid(Index n);

// Collective. Sets the ghosts to the values on the other side.
void fill_ghosts(const Grid& grid, double* field);

// All 0.
Array<double> make_field(const Grid& grid, npb::Use use);

}  // namespace eddy
