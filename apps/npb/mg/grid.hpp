// SPDX-License-Identifier: BSD-3-Clause
//
// Grids of MG: cubes of n^3 points, periodic, with one layer of ghosts around them. Level k has
// n = 2^k. A grid is cut along z into slabs, one for each rank; the coarse ones, of which a rank
// would have less than two planes, are held whole by each rank.
//
// A field is an array of (n + 2) x (n + 2) x (planes + 2) numbers, x fastest. All levels of a field
// are in one array, the finest first, as in NPB; it ends with a page, as an object of in-place
// versioning shares none.
#pragma once

#include <array>

#include "npb/array.hpp"

namespace npb::mg {

constexpr int levels_max = 10;

struct Grid {
  Index n = 0;            // points in each direction
  Index planes = 0;       // of this rank, without ghosts
  Index first_plane = 0;  // of this rank, counted from 0
  bool shared = false;    // each rank has all planes

  Index row() const { return n + 2; }
  Index plane() const { return row() * row(); }
  Index size() const { return plane() * (planes + 2); }
};

struct Hierarchy {
  int finest = 0;  // levels are 1 to finest
  std::array<Grid, levels_max + 1> grid;
  std::array<Index, levels_max + 1> start;  // of each level within a field
  Index size = 0;                           // of a field with all levels, and gaps
};

// Throws std::runtime_error if the ranks can't share the finest grid.
Hierarchy make_hierarchy(int finest);

// Collective unless the grid is shared. Sets the ghosts to the points on the other side.
void fill_ghosts(const Grid& grid, double* field);

}  // namespace npb::mg
