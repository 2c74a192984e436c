// SPDX-License-Identifier: BSD-3-Clause
//
// The classes of MG (RNR-94-007, section 2.2.3; NPB 3 for W and C) with the published norm of the
// residual.
#pragma once

#include <array>

#include "npb/array.hpp"

namespace npb::mg {

// Weights of a stencil of 27 points: of the point itself, and of each of its 6 neighbours across
// faces, 12 across edges and 8 across corners.
using Stencil = std::array<double, 4>;

struct ProblemClass {
  int levels;  // the finest grid has 2^levels points in each direction
  int iterations;
  Stencil smoother;
  double residual_norm;  // published
};

constexpr Stencil laplacian{-8.0 / 3.0, 0.0, 1.0 / 6.0, 1.0 / 12.0};
constexpr double tolerance = 1e-8;

const ProblemClass& class_of(char name);

}  // namespace npb::mg
