#include "npb/sp/pipeline.hpp"

#include "npb/ranks.hpp"

namespace npb::sp {
namespace {

// Row j of two planes of a field with `width` numbers a point.
template <typename Use>
void for_rows(Flow& flow, double* field, Index width, Index j, Index first_plane, Use use) {
  for (Index k = first_plane; k < first_plane + 2; ++k) {
    use(field + width * flow.point(0, j, k), width * flow.n);
  }
}

void send_rows(Flow& flow, double* field, Index width, Index j, Index first_plane, int to) {
  for_rows(flow, field, width, j, first_plane,
           [&](const double* row, Index n) { ranks::send(to, row, n); });
}

void receive_rows(Flow& flow, double* field, Index width, Index j, Index first_plane, int from) {
  for_rows(flow, field, width, j, first_plane,
           [&](double* row, Index n) { ranks::receive(from, row, n); });
}

bool is_first() {
  return ranks::rank() == 0;
}
bool is_last() {
  return ranks::rank() == ranks::count() - 1;
}

}  // namespace

void receive_eliminated(Flow& flow, Index j) {
  if (is_first()) return;
  receive_rows(flow, flow.lhs.get(), 15, j, flow.first - 2, ranks::rank() - 1);
  receive_rows(flow, flow.rhs.get(), 5, j, flow.first - 2, ranks::rank() - 1);
}

void send_eliminated(Flow& flow, Index j) {
  if (is_last()) return;
  send_rows(flow, flow.lhs.get(), 15, j, flow.last - 2, ranks::rank() + 1);
  send_rows(flow, flow.rhs.get(), 5, j, flow.last - 2, ranks::rank() + 1);
}

void receive_solved(Flow& flow, Index j) {
  if (is_last()) return;
  receive_rows(flow, flow.rhs.get(), 5, j, flow.last, ranks::rank() + 1);
}

void send_solved(Flow& flow, Index j) {
  if (is_first()) return;
  send_rows(flow, flow.rhs.get(), 5, j, flow.first, ranks::rank() - 1);
}

}  // namespace npb::sp
