// What ranks send each other while lines along z are solved, for the row j of lines. With one rank,
// and at the ends of the cube, there is nothing to send.
#pragma once

#include "npb/sp/flow.hpp"

namespace npb::sp {

// The two planes before this rank's, of lhs and rhs, after elimination.
void receive_eliminated(Flow& flow, Index j);
void send_eliminated(Flow& flow, Index j);

// The two planes after this rank's, of rhs, after substitution.
void receive_solved(Flow& flow, Index j);
void send_solved(Flow& flow, Index j);

}  // namespace npb::sp
