// SPDX-License-Identifier: BSD-3-Clause
//
// The classes of LU (RNR-94-007, section 3; NPB 3 for W and C) with the published numbers.
#pragma once

#include "npb/flow/problem.hpp"

namespace npb::lu {

struct ProblemClass {
  flow::ProblemClass flow;
  double surface_integral;  // published
};

const ProblemClass& class_of(char name);

}  // namespace npb::lu
