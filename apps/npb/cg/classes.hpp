// SPDX-License-Identifier: BSD-3-Clause
//
// The classes of CG (RNR-94-007, section 2.2.4, and NPB 3 for C) with the published zeta.
#pragma once

#include "npb/array.hpp"

namespace npb::cg {

struct ProblemClass {
  Index n;         // rows of the matrix
  int nonzeros;    // of each random vector, before the one that is set
  int iterations;  // of the inverse power method
  double shift;    // lambda
  double zeta;     // published
};

constexpr double condition = 0.1;  // rcond: the smallest weight of a vector
constexpr double tolerance = 1e-10;
constexpr int inner_iterations = 25;  // of conjugate gradients in each outer one

const ProblemClass& class_of(char name);

}  // namespace npb::cg
