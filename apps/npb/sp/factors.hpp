// SPDX-License-Identifier: BSD-3-Clause
//
// The approximate factorisation of SP (RNR-94-007, section 3.4; Pulliam and Chaussee, 1981): in
// each direction the Jacobian is diagonalised, which leaves a scalar system of five diagonals for
// each of three eigenvalues: the velocity (for three unknowns), and it plus and minus the speed of
// sound.
#pragma once

#include "npb/flow/flow.hpp"

namespace npb::sp {

using flow::Five;
using flow::Flow;

// Numbers of a point in lhs, which lies as u does.
constexpr Index lhs_width = 15;

// Collective. Solves for the change of u in one time step: rhs before, the change afterwards. lhs
// is 0 on the boundary.
void solve_factors(Flow& flow, double* lhs);

}  // namespace npb::sp
