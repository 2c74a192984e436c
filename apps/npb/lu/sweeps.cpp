// SPDX-License-Identifier: BSD-3-Clause
#include "npb/lu/sweeps.hpp"

#include <algorithm>

#include "npb/flow/jacobian.hpp"
#include "npb/flow/pipeline.hpp"
#include "npb/ranks.hpp"

// A point waits for its three neighbours before it, or after it: also those of another rank. Rows
// of points go through the ranks as a wave, some at a time. rhs is 0 on the boundary, so that its
// points add nothing.

namespace npb::lu {
namespace {

using flow::State;

constexpr Index rows_of_message = 8;

class Points {
 public:
  explicit Points(Flow& flow) : flow_(flow), steps_(flow), rhs_(flow.rhs.get()) {
    for (const double dissipation : flow::second_dissipation) dissipated_ += dissipation;
  }

  void solve_lower(Index at) const {
    double sums[5] = {};
    add_neighbour<0>(at - 1, -steps_.first, sums);
    add_neighbour<1>(at - flow_.n, -steps_.first, sums);
    add_neighbour<2>(at - flow_.n * flow_.n, -steps_.first, sums);
    double* r = rhs_ + 5 * at;
    for (int m = 0; m < 5; ++m) r[m] -= omega * sums[m];
    solve_diagonal(at, r);
  }

  void solve_upper(Index at) const {
    double sums[5] = {};
    add_neighbour<0>(at + 1, steps_.first, sums);
    add_neighbour<1>(at + flow_.n, steps_.first, sums);
    add_neighbour<2>(at + flow_.n * flow_.n, steps_.first, sums);
    solve_diagonal(at, sums);
    double* r = rhs_ + 5 * at;
    for (int m = 0; m < 5; ++m) r[m] -= omega * sums[m];
  }

 private:
  // Adds a neighbour's block times its part of rhs.
  template <int axis>
  void add_neighbour(Index at, double convection, double* sums) const {
    double w[5][1], product[5][1];
    for (int m = 0; m < 5; ++m) w[m][0] = rhs_[5 * at + m];
    flow::multiply_block<axis>(State(flow_, at), convection, steps_.second, w, product);
    for (int m = 0; m < 5; ++m) sums[m] += product[m][0];
  }

  // r = D^-1 r, forwards only: the block has nothing above its diagonal.
  void solve_diagonal(Index at, double* r) const {
    constexpr double weight[3] = {10.0 / 3, 10.0 / 3, 10.0 / 3};
    const flow::DiagonalBlock block =
        flow::diagonal_block(State(flow_, at), steps_.second, weight, 3, dissipated_);
    r[0] /= block.density;
    r[4] -= block.energy[0] * r[0];
    for (int m = 0; m < 3; ++m) {
      r[1 + m] = (r[1 + m] - block.carried[m] * r[0]) / block.momentum[m];
      r[4] -= block.energy[1 + m] * r[1 + m];
    }
    r[4] /= block.energy[4];
  }

  Flow& flow_;
  flow::Steps steps_;
  double* rhs_;
  double dissipated_ = 0;
};

// All rows where there is nobody to wait for them: planes are then worked off one by one.
Index rows_at_once(const Flow& flow) {
  return ranks::count() == 1 ? flow.n : rows_of_message;
}

}  // namespace

void solve_lower(Flow& flow) {
  const Points points(flow);
  const Index end_row = flow.n - 1;
  for (Index row = 1; row < end_row; row += rows_at_once(flow)) {
    const flow::Rows rows{flow.rhs.get(), 5, row, std::min(row + rows_at_once(flow), end_row)};
    receive_from_before(flow, rows, 1);
    for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
      for (Index j = rows.first_row; j < rows.end_row; ++j) {
        for (Index i = 1; i < flow.n - 1; ++i) points.solve_lower(flow.point(i, j, k));
      }
    }
    send_to_after(flow, rows, 1);
  }
}

void solve_upper(Flow& flow) {
  const Points points(flow);
  for (Index end_row = flow.n - 1; end_row > 1; end_row -= rows_at_once(flow)) {
    const Index first_row = std::max<Index>(end_row - rows_at_once(flow), 1);
    const flow::Rows rows{flow.rhs.get(), 5, first_row, end_row};
    receive_from_after(flow, rows, 1);
    for (Index k = flow.inner_last() - 1; k >= flow.inner_first(); --k) {
      for (Index j = rows.end_row - 1; j >= rows.first_row; --j) {
        for (Index i = flow.n - 2; i >= 1; --i) points.solve_upper(flow.point(i, j, k));
      }
    }
    send_to_before(flow, rows, 1);
  }
}

}  // namespace npb::lu
