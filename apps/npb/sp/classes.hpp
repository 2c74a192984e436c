// The classes of SP (RNR-94-007, section 3; NPB 3 for W and C) with the published norms.
#pragma once

#include <array>

#include "npb/array.hpp"

namespace npb::sp {

using Five = std::array<double, 5>;  // density, momentum along x, y, z, energy

struct ProblemClass {
  Index n;  // points in each direction, the boundary included
  int iterations;
  double dt;
  Five residual;  // published root mean squares over the points
  Five error;     // of the difference from the exact solution
};

constexpr double tolerance = 1e-8;

const ProblemClass& class_of(char name);

}  // namespace npb::sp
