// The approximate factorisation of SP (RNR-94-007, section 3.4; Pulliam and Chaussee, 1981): in
// each direction the Jacobian is diagonalised, which leaves a scalar system of five diagonals for
// each of three eigenvalues: the velocity (for three unknowns), and it plus and minus the speed of
// sound.
#pragma once

#include "npb/sp/flow.hpp"

namespace npb::sp {

// Collective. Solves for the change of u in one time step: rhs before, the change afterwards.
void solve_factors(Flow& flow);

// u += rhs
void add_change(Flow& flow);

}  // namespace npb::sp
