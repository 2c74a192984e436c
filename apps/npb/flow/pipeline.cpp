// SPDX-License-Identifier: BSD-3-Clause
#include "npb/flow/pipeline.hpp"

#include "npb/ranks.hpp"

namespace npb::flow {
namespace {

void send(const Flow& flow, const Rows& rows, Index first_plane, Index planes, int to) {
  for (Index k = first_plane; k < first_plane + planes; ++k) {
    ranks::send(to, rows.field + rows.width * flow.point(0, rows.first_row, k),
                rows.width * flow.n * (rows.end_row - rows.first_row));
  }
}

void receive(const Flow& flow, const Rows& rows, Index first_plane, Index planes, int from) {
  for (Index k = first_plane; k < first_plane + planes; ++k) {
    ranks::receive(from, rows.field + rows.width * flow.point(0, rows.first_row, k),
                   rows.width * flow.n * (rows.end_row - rows.first_row));
  }
}

bool is_first() {
  return ranks::rank() == 0;
}
bool is_last() {
  return ranks::rank() == ranks::count() - 1;
}

}  // namespace

void receive_from_before(const Flow& flow, const Rows& rows, Index planes) {
  if (!is_first()) receive(flow, rows, flow.first - planes, planes, ranks::rank() - 1);
}

void send_to_after(const Flow& flow, const Rows& rows, Index planes) {
  if (!is_last()) send(flow, rows, flow.last - planes, planes, ranks::rank() + 1);
}

void receive_from_after(const Flow& flow, const Rows& rows, Index planes) {
  if (!is_last()) receive(flow, rows, flow.last, planes, ranks::rank() + 1);
}

void send_to_before(const Flow& flow, const Rows& rows, Index planes) {
  if (!is_first()) send(flow, rows, flow.first, planes, ranks::rank() - 1);
}

}  // namespace npb::flow
