// SPDX-License-Identifier: BSD-3-Clause
//
// Grid: which part of the domain a rank has, and how its vectors are laid out.
//
// The domain has nx by ny by (ranks * nz) points; rank k has the k-th slab of nz planes. A vector
// holds the slab's points, x fastest. A vector that is multiplied by the matrix also holds, after
// them, the neighbours' planes: first that of the rank below, then that of the rank above.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hpccg {

struct Grid {
  std::uint32_t nx, ny, nz;
  int rank, ranks;

  std::size_t plane() const { return std::size_t{nx} * ny; }
  std::size_t points() const { return plane() * nz; }
  std::size_t points_with_halo() const { return points() + 2 * plane(); }
  bool has_below() const { return rank > 0; }
  bool has_above() const { return rank + 1 < ranks; }
};

}  // namespace hpccg
