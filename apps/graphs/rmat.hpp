// SPDX-License-Identifier: BSD-3-Clause
//
// R-MAT: random graphs with the skewed degrees of the web (Chakrabarti, Zhan, Faloutsos, "R-MAT: A
// Recursive Model for Graph Mining", SDM 2004), with a, b, c, d = 0.57, 0.19, 0.19, 0.05 and the
// nodes renumbered by a fixed permutation, so that their number says nothing about their degree.
//
// Arc i is a function of the seed, the scale and i alone: the parts of any number of ranks are
// together the same graph. Loops are left out; arcs that were drawn twice are left in.
#pragma once

#include <cstdint>

#include "arcs.hpp"

namespace graphs {

struct Rmat {
  unsigned scale = 0;  // 2^scale nodes, 1 to 31
  std::uint64_t edge_factor = 16;
  std::uint64_t seed = 1;
};

ArcPart generate_rmat(const Rmat& rmat, Part part);

// The permutation: a bijection of [0, 2^scale).
std::uint32_t scrambled(std::uint32_t node, unsigned scale, std::uint64_t seed);

}  // namespace graphs
