// SPDX-License-Identifier: BSD-3-Clause
//
// The classes of FT (RNR-94-007, section 2.2.5; NPB 3 for W and C) with the published checksums.
#pragma once

#include <complex>
#include <vector>

#include "npb/array.hpp"

namespace npb::ft {

struct ProblemClass {
  Index nx, ny, nz;                             // powers of two
  std::vector<std::complex<double>> checksums;  // published, of each iteration
};

constexpr Index iterations_max = 20;  // of the classes
constexpr double tolerance = 1e-12;

const ProblemClass& class_of(char name);

}  // namespace npb::ft
