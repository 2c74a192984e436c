// SPDX-License-Identifier: BSD-3-Clause
//
// What ranks send each other while lines along z are solved: rows of planes. Eliminations go up
// through the ranks, substitutions come back down. With one rank, and at the ends of the cube,
// there is nothing to send.
#pragma once

#include "npb/flow/flow.hpp"

namespace npb::flow {

// Rows of a field that has `width` numbers a point and lies as u does.
struct Rows {
  double* field;
  Index width;
  Index first_row, end_row;  // of a plane
};

// The `planes` planes before this rank's come from the rank before; the last of this rank's go to
// the rank after.
void receive_from_before(const Flow& flow, const Rows& rows, Index planes);
void send_to_after(const Flow& flow, const Rows& rows, Index planes);

// The `planes` planes after this rank's come from the rank after; the first of this rank's go to
// the rank before.
void receive_from_after(const Flow& flow, const Rows& rows, Index planes);
void send_to_before(const Flow& flow, const Rows& rows, Index planes);

}  // namespace npb::flow
