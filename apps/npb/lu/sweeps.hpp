// SPDX-License-Identifier: BSD-3-Clause
//
// Symmetric successive over-relaxation (RNR-94-007, section 3.5; Yoon and Jameson, 1988): the
// operator is the sum of a block diagonal D and of blocks L before it and U after it, which is
// approximated by (D + omega L) D^-1 (D + omega U) / (omega (2 - omega)).
#pragma once

#include "npb/flow/flow.hpp"

namespace npb::lu {

using flow::Flow;

constexpr double omega = 1.2;

// Collective. rhs = (D + omega L)^-1 rhs
void solve_lower(Flow& flow);

// Collective. rhs = (D + omega U)^-1 D rhs
void solve_upper(Flow& flow);

}  // namespace npb::lu
