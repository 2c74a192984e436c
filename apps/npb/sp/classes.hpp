// SPDX-License-Identifier: BSD-3-Clause
//
// The classes of SP (RNR-94-007, section 3; NPB 3 for W and C) with the published norms.
#pragma once

#include "npb/flow/problem.hpp"

namespace npb::sp {

const flow::ProblemClass& class_of(char name);

}  // namespace npb::sp
