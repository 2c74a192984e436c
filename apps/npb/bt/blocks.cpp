// SPDX-License-Identifier: BSD-3-Clause
#include "npb/bt/blocks.hpp"

#include <algorithm>

#include "npb/flow/jacobian.hpp"
#include "npb/flow/pipeline.hpp"
#include "npb/ranks.hpp"

// Nothing changes on the boundary: rhs is 0 there, and the rows of the points beside it leave out
// the block before, or multiply that after by 0.

namespace npb::bt {
namespace {

using flow::State;

constexpr int columns = 6;  // of an eliminated row: the block after, and the right side

constexpr double identity[5][5] = {
    {1, 0, 0, 0, 0}, {0, 1, 0, 0, 0}, {0, 0, 1, 0, 0}, {0, 0, 0, 1, 0}, {0, 0, 0, 0, 1}};

// [block | right] becomes [unit | block^-1 right], by Gauss and Jordan without a search for pivots:
// the blocks are dominated by their diagonals.
void solve_block(double (&m)[5][5 + columns]) {
  for (int pivot = 0; pivot < 5; ++pivot) {
    const double inverse = 1 / m[pivot][pivot];
    for (int c = pivot + 1; c < 5 + columns; ++c) m[pivot][c] *= inverse;
    for (int r = 0; r < 5; ++r) {
      if (r == pivot) continue;
      const double factor = m[r][pivot];
      for (int c = pivot + 1; c < 5 + columns; ++c) m[r][c] -= factor * m[pivot][c];
    }
  }
}

// The systems of one direction.
template <int axis>
class Lines {
 public:
  explicit Lines(Flow& flow) : flow_(flow), steps_(flow), stride_(flow.stride(axis)) {}

  // Makes the row of a point and eliminates the unknowns of the point before, whose row is
  // `before`; null beside the boundary.
  void eliminate(Index point, const double* before, double* row) const {
    double m[5][5 + columns];
    set_diagonal(point, m);
    double after[5][5];
    flow::multiply_block<axis>(State(flow_, point + stride_), steps_.first, steps_.second, identity,
                               after);
    const double* right = flow_.rhs.get() + 5 * point;
    for (int r = 0; r < 5; ++r) {
      for (int c = 0; c < 5; ++c) m[r][5 + c] = after[r][c];
      m[r][10] = right[r];
    }
    if (before != nullptr) subtract_before(point, before, m);
    solve_block(m);
    for (int r = 0; r < 5; ++r) std::copy(m[r] + 5, m[r] + 5 + columns, row + columns * r);
  }

  // rhs becomes the change at a point. It has been found at the point after.
  void substitute(Index point, const double* row) const {
    double* change = flow_.rhs.get() + 5 * point;
    const double* after = change + 5 * stride_;
    for (int r = 0; r < 5; ++r) {
      const double* a = row + columns * r;
      change[r] = a[5] - (a[0] * after[0] + a[1] * after[1] + a[2] * after[2] + a[3] * after[3] +
                          a[4] * after[4]);
    }
  }

 private:
  void set_diagonal(Index point, double (&m)[5][5 + columns]) const {
    constexpr double weight[3] = {axis == 0 ? 4.0 / 3 : 1.0, axis == 1 ? 4.0 / 3 : 1.0,
                                  axis == 2 ? 4.0 / 3 : 1.0};
    const flow::DiagonalBlock block = flow::diagonal_block(
        State(flow_, point), steps_.second, weight, 1, flow::second_dissipation[axis]);
    for (auto& row : m) std::fill(row, row + 5, 0.0);
    m[0][0] = block.density;
    for (int r = 1; r <= 3; ++r) {
      m[r][0] = block.carried[r - 1];
      m[r][r] = block.momentum[r - 1];
    }
    std::copy(block.energy, block.energy + 5, m[4]);
  }

  void subtract_before(Index point, const double* before, double (&m)[5][5 + columns]) const {
    double w[5][columns], product[5][columns];
    for (int r = 0; r < 5; ++r) std::copy(before + columns * r, before + columns * (r + 1), w[r]);
    flow::multiply_block<axis>(State(flow_, point - stride_), -steps_.first, steps_.second, w,
                               product);
    for (int r = 0; r < 5; ++r) {
      for (int c = 0; c < 5; ++c) m[r][c] -= product[r][c];
      m[r][10] -= product[r][5];
    }
  }

  Flow& flow_;
  flow::Steps steps_;
  Index stride_;
};

void solve_x(Flow& flow, Eliminated& eliminated) {
  const Lines<0> lines(flow);
  double* rows = eliminated.rows.get();
  const Index width = Eliminated::width;
  for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
    for (Index j = 1; j < flow.n - 1; ++j) {
      for (Index i = 1; i < flow.n - 1; ++i) {
        double* row = rows + width * i;
        lines.eliminate(flow.point(i, j, k), i > 1 ? row - width : nullptr, row);
      }
      for (Index i = flow.n - 2; i >= 1; --i) {
        lines.substitute(flow.point(i, j, k), rows + width * i);
      }
    }
  }
}

void solve_y(Flow& flow, Eliminated& eliminated) {
  const Lines<1> lines(flow);
  double* rows = eliminated.rows.get();
  const Index width = Eliminated::width * flow.n;
  for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
    for (Index j = 1; j < flow.n - 1; ++j) {
      for (Index i = 1; i < flow.n - 1; ++i) {
        double* row = rows + width * j + Eliminated::width * i;
        lines.eliminate(flow.point(i, j, k), j > 1 ? row - width : nullptr, row);
      }
    }
    for (Index j = flow.n - 2; j >= 1; --j) {
      for (Index i = 1; i < flow.n - 1; ++i) {
        lines.substitute(flow.point(i, j, k), rows + width * j + Eliminated::width * i);
      }
    }
  }
}

void eliminate_z(Flow& flow, Eliminated& eliminated, Index j) {
  const Lines<2> lines(flow);
  for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
    for (Index i = 1; i < flow.n - 1; ++i) {
      const double* before = k > 1 ? eliminated.along_z(flow, i, j, k - 1) : nullptr;
      lines.eliminate(flow.point(i, j, k), before, eliminated.along_z(flow, i, j, k));
    }
  }
}

void substitute_z(Flow& flow, Eliminated& eliminated, Index j) {
  const Lines<2> lines(flow);
  for (Index k = flow.inner_last() - 1; k >= flow.inner_first(); --k) {
    for (Index i = 1; i < flow.n - 1; ++i) {
      lines.substitute(flow.point(i, j, k), eliminated.along_z(flow, i, j, k));
    }
  }
}

// The lines cross the ranks: the eliminations follow each other through them, one row of lines
// after the other, and come back as substitutions.
void solve_z(Flow& flow, Eliminated& eliminated) {
  for (Index j = 1; j < flow.n - 1; ++j) {
    const flow::Rows rows{eliminated.rows.get(), Eliminated::width, j, j + 1};
    receive_from_before(flow, rows, 1);
    eliminate_z(flow, eliminated, j);
    send_to_after(flow, rows, 1);
    if (ranks::count() == 1) substitute_z(flow, eliminated, j);
  }
  if (ranks::count() == 1) return;
  for (Index j = 1; j < flow.n - 1; ++j) {
    const flow::Rows changes{flow.rhs.get(), 5, j, j + 1};
    receive_from_after(flow, changes, 1);
    substitute_z(flow, eliminated, j);
    send_to_before(flow, changes, 1);
  }
}

}  // namespace

Eliminated::Eliminated(const Flow& flow)
    : rows_of_plane(ranks::count() == 1 ? 1 : flow.n),
      rows(width * flow.planes * rows_of_plane * flow.n) {}

void solve_blocks(Flow& flow, Eliminated& eliminated) {
  solve_x(flow, eliminated);
  solve_y(flow, eliminated);
  solve_z(flow, eliminated);
}

}  // namespace npb::bt
