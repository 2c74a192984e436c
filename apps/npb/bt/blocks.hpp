// SPDX-License-Identifier: BSD-3-Clause
//
// The approximate factorisation of BT (RNR-94-007, section 3.3; Beam and Warming, 1976): one block
// tridiagonal system for each line of points, along x, then y, then z.
#pragma once

#include "npb/flow/flow.hpp"

namespace npb::bt {

using flow::Flow;

// The rows that elimination leaves behind and substitution uses: of a point, its block of the next
// point's unknowns and its right side, five rows of six numbers.
//
// One rank needs them for one row of lines along z at a time, or for one plane. If there are
// several, eliminations of all rows of lines pass before substitutions come back: the rows of all
// points are kept, and lie as u does.
struct Eliminated {
  static constexpr Index width = 30;

  explicit Eliminated(const Flow& flow);
  double* along_z(const Flow& flow, Index i, Index j, Index k) {
    const Index row = (k - flow.base) * rows_of_plane + (rows_of_plane > 1 ? j : 0);
    return rows.get() + width * (row * flow.n + i);
  }

  Index rows_of_plane;
  Array<double> rows;
};

// Collective. Solves for the change of u in one time step: rhs before, the change afterwards.
void solve_blocks(Flow& flow, Eliminated& eliminated);

}  // namespace npb::bt
