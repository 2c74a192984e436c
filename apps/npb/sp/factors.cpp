// SPDX-License-Identifier: BSD-3-Clause
#include "npb/sp/factors.hpp"

#include <cmath>

#include "npb/flow/pipeline.hpp"

// A point's fifteen numbers in lhs are the rows of its three systems, five each, of the weights of
// the points -2 to 2 from it. After elimination only those of the points 1 and 2 are used, and that
// of the point itself is 1. Rows of the boundary say that nothing changes there: they are 0 in lhs
// and in rhs, and never written.

namespace npb::sp {
namespace {

using flow::c1c5;
using flow::c2;
using flow::c3c4;
using flow::fourth_difference;
using flow::Rows;

const double bt = std::sqrt(0.5);

// Calls use(rhs of the point, point) for the points of this rank off the boundary.
template <typename Use>
void for_inner(Flow& flow, Use use) {
  double* rhs = flow.rhs.get();
  for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
    for (Index j = 1; j < flow.n - 1; ++j) {
      for (Index i = 1; i < flow.n - 1; ++i) {
        const Index at = flow.point(i, j, k);
        use(rhs + 5 * at, at);
      }
    }
  }
}

// To the eigenvectors of the x direction: T_x^-1.
void to_x(Flow& flow) {
  const double *rho_inverse = flow.rho_inverse.get(), *us = flow.us.get(), *vs = flow.vs.get(),
               *ws = flow.ws.get(), *qs = flow.qs.get(), *speed = flow.speed.get();
  for_inner(flow, [=](double* r, Index at) {
    const double inverse = rho_inverse[at], c = speed[at];
    const double pressure =
        c2 / (c * c) * (qs[at] * r[0] - us[at] * r[1] - vs[at] * r[2] - ws[at] * r[3] + r[4]);
    const double normal = bt * inverse * (us[at] * r[0] - r[1]);
    const double sound = bt * inverse * c * pressure;
    const double r0 = r[0], r2 = r[2], r3 = r[3];
    r[0] = r0 - pressure;
    r[1] = -inverse * (ws[at] * r0 - r3);
    r[2] = inverse * (vs[at] * r0 - r2);
    r[3] = sound - normal;
    r[4] = sound + normal;
  });
}

// From the eigenvectors of x to those of y: N = T_x^-1 T_y, inverted.
void x_to_y(Flow& flow) {
  for_inner(flow, [](double* r, Index) {
    const double r0 = r[0], r2 = bt * r[2], mean = 0.5 * (r[3] + r[4]);
    r[2] = bt * (r[3] - r[4]);
    r[0] = -r[1];
    r[1] = r0;
    r[3] = mean - r2;
    r[4] = mean + r2;
  });
}

// From y to z: P = T_y^-1 T_z, inverted.
void y_to_z(Flow& flow) {
  for_inner(flow, [](double* r, Index) {
    const double r0 = bt * r[0], r1 = r[1], mean = 0.5 * (r[3] + r[4]);
    r[0] = bt * (r[3] - r[4]);
    r[1] = -r[2];
    r[2] = r1;
    r[3] = mean - r0;
    r[4] = mean + r0;
  });
}

// From z back to the unknowns: T_z.
void from_z(Flow& flow) {
  const double *u = flow.u.get(), *us = flow.us.get(), *vs = flow.vs.get(), *ws = flow.ws.get(),
               *qs = flow.qs.get(), *speed = flow.speed.get();
  for_inner(flow, [=](double* r, Index at) {
    const double rho = u[5 * at], c = speed[at];
    const double sound = bt * rho / c * (r[3] + r[4]);
    const double mass = r[2] + sound;
    const double flow_z = bt * rho * (r[3] - r[4]);
    const double r0 = r[0], r1 = r[1];
    r[0] = mass;
    r[1] = us[at] * mass - rho * r1;
    r[2] = vs[at] * mass + rho * r0;
    r[3] = ws[at] * mass + flow_z;
    r[4] = rho * (vs[at] * r0 - us[at] * r1) + qs[at] * mass + c * c / c2 * sound + ws[at] * flow_z;
  });
}

// The systems of one direction.
class Lines {
 public:
  Lines(Flow& flow, double* lhs, int axis)
      : stride_(flow.stride(axis)),
        n_(flow.n),
        lhs_(lhs),
        rhs_(flow.rhs.get()),
        velocity_(flow.velocity(axis)),
        speed_(flow.speed.get()),
        rho_inverse_(flow.rho_inverse.get()),
        dissipation_(flow.dt * flow::dissipation),
        constant_(flow::second_dissipation[axis]) {
    const auto inverse_h = static_cast<double>(flow.n - 1);
    first_ = flow.dt * inverse_h / 2;
    second_ = flow.dt * inverse_h * inverse_h;
  }

  // Makes the rows of a point and eliminates the two unknowns before it. `at` is its place along
  // the line, from 1 to n - 2. The points before it have been eliminated.
  void eliminate(Index point, Index at) const {
    double* row = lhs_ + 15 * point;
    make_rows(point, at, row);
    const double* row1 = row - 15 * stride_;
    const double* row2 = at > 1 ? row1 - 15 * stride_ : row1;  // weighs 0 at 1
    double* f = rhs_ + 5 * point;
    const double* f1 = f - 5 * stride_;
    const double* f2 = at > 1 ? f1 - 5 * stride_ : f1;
    eliminate<0, 3>(row, row1, row2, f, f1, f2);
    eliminate<3, 4>(row + 5, row1 + 5, row2 + 5, f, f1, f2);
    eliminate<4, 5>(row + 10, row1 + 10, row2 + 10, f, f1, f2);
  }

  // The points after it have been solved.
  void substitute(Index point, Index at) const {
    const double* row = lhs_ + 15 * point;
    double* f = rhs_ + 5 * point;
    const double* f3 = f + 5 * stride_;
    const double* f4 = at < n_ - 2 ? f3 + 5 * stride_ : f3;  // weighs 0 at n - 2
    for (int m = 0; m < 3; ++m) f[m] -= row[3] * f3[m] + row[4] * f4[m];
    f[3] -= row[8] * f3[3] + row[9] * f4[3];
    f[4] -= row[13] * f3[4] + row[14] * f4[4];
  }

 private:
  void make_rows(Index point, Index at, double* row) const {
    const Index before = point - stride_, after = point + stride_;
    const double* weight = fourth_difference(at, n_);
    const double velocity[2] = {first_ * velocity_[before], first_ * velocity_[after]};
    const double sound[2] = {first_ * speed_[before], first_ * speed_[after]};
    row[0] = dissipation_ * weight[0];
    row[1] = dissipation_ * weight[1] - velocity[0] - second_ * viscosity(before);
    row[2] = dissipation_ * weight[2] + 1 + 2 * second_ * viscosity(point);
    row[3] = dissipation_ * weight[3] + velocity[1] - second_ * viscosity(after);
    row[4] = dissipation_ * weight[4];
    for (int m = 0; m < 5; ++m) row[5 + m] = row[10 + m] = row[m];
    row[6] -= sound[0];
    row[8] += sound[1];
    row[11] += sound[0];
    row[13] -= sound[1];
  }

  // The largest of the equations' viscosities, that of heat: c1c5 is above 4/3 and 1.
  double viscosity(Index point) const { return constant_ + c1c5 * c3c4 * rho_inverse_[point]; }

  // One system, whose unknowns are those from `begin` to `end`.
  template <int begin, int end>
  static void eliminate(double* row, const double* row1, const double* row2, double* f,
                        const double* f1, const double* f2) {
    const double a0 = row[0];
    const double a1 = row[1] - a0 * row2[3];
    const double inverse = 1 / (row[2] - a0 * row2[4] - a1 * row1[3]);
    row[3] = (row[3] - a1 * row1[4]) * inverse;
    row[4] *= inverse;
    for (int m = begin; m < end; ++m) f[m] = (f[m] - a0 * f2[m] - a1 * f1[m]) * inverse;
  }

  Index stride_, n_;
  double *lhs_, *rhs_;
  const double *velocity_, *speed_, *rho_inverse_;
  double dissipation_, constant_, first_ = 0, second_ = 0;
};

void solve_x(Flow& flow, double* lhs) {
  const Lines lines(flow, lhs, 0);
  for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
    for (Index j = 1; j < flow.n - 1; ++j) {
      for (Index i = 1; i < flow.n - 1; ++i) lines.eliminate(flow.point(i, j, k), i);
      for (Index i = flow.n - 2; i >= 1; --i) lines.substitute(flow.point(i, j, k), i);
    }
  }
}

void solve_y(Flow& flow, double* lhs) {
  const Lines lines(flow, lhs, 1);
  for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
    for (Index j = 1; j < flow.n - 1; ++j) {
      for (Index i = 1; i < flow.n - 1; ++i) lines.eliminate(flow.point(i, j, k), j);
    }
    for (Index j = flow.n - 2; j >= 1; --j) {
      for (Index i = 1; i < flow.n - 1; ++i) lines.substitute(flow.point(i, j, k), j);
    }
  }
}

// The lines cross the ranks: the eliminations follow each other through them, one row of lines
// after the other, and come back as substitutions.
void solve_z(Flow& flow, double* lhs) {
  const Lines lines(flow, lhs, 2);
  const auto weights = [&](Index j) { return Rows{lhs, lhs_width, j, j + 1}; };
  const auto values = [&](Index j) { return Rows{flow.rhs.get(), 5, j, j + 1}; };
  for (Index j = 1; j < flow.n - 1; ++j) {
    receive_from_before(flow, weights(j), 2);
    receive_from_before(flow, values(j), 2);
    for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
      for (Index i = 1; i < flow.n - 1; ++i) lines.eliminate(flow.point(i, j, k), k);
    }
    send_to_after(flow, weights(j), 2);
    send_to_after(flow, values(j), 2);
  }
  for (Index j = 1; j < flow.n - 1; ++j) {
    receive_from_after(flow, values(j), 2);
    for (Index k = flow.inner_last() - 1; k >= flow.inner_first(); --k) {
      for (Index i = 1; i < flow.n - 1; ++i) lines.substitute(flow.point(i, j, k), k);
    }
    send_to_before(flow, values(j), 2);
  }
}

}  // namespace

void solve_factors(Flow& flow, double* lhs) {
  to_x(flow);
  solve_x(flow, lhs);
  x_to_y(flow);
  solve_y(flow, lhs);
  y_to_z(flow);
  solve_z(flow, lhs);
  from_z(flow);
}

}  // namespace npb::sp
