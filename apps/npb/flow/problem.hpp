// SPDX-License-Identifier: BSD-3-Clause
//
// What a class of SP, BT and LU sets: the size of the flow's problem and the published norms.
#pragma once

#include <array>

#include "npb/array.hpp"

namespace npb::flow {

using Five = std::array<double, 5>;  // density, momentum along x, y, z, energy

struct ProblemClass {
  Index n;  // points in each direction, the boundary included
  int iterations;
  double dt;
  Five residual;  // published root mean squares over the points
  Five error;     // of the difference from the exact solution
};

constexpr double tolerance = 1e-8;

}  // namespace npb::flow
