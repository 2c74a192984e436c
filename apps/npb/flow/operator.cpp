// SPDX-License-Identifier: BSD-3-Clause
//
// The residual: the discrete operator of the compressible Navier-Stokes equations
// (RNR-94-007, sections 3.1 to 3.3), second-order central differences with fourth-order
// dissipation, one direction after the other.
#include <algorithm>
#include <cmath>

#include "npb/flow/flow.hpp"
#include "npb/parallel.hpp"

namespace npb::flow {
namespace {

// The fields that are functions of u at the same point, also on one plane of ghosts.
void derive(Flow& flow) {
  const double* u = flow.u.get();
  double* rho_inverse = flow.rho_inverse.get();
  double* us = flow.us.get();
  double* vs = flow.vs.get();
  double* ws = flow.ws.get();
  double* square = flow.square.get();
  double* qs = flow.qs.get();
  double* speed = flow.speed.get();  // null where it is left out
  const Index from = flow.point(0, 0, std::max<Index>(flow.first - 1, 0));
  const Index to = flow.point(0, 0, std::min<Index>(flow.last + 1, flow.n));
  NPB_PARALLEL()
  for (Index at = from; at < to; ++at) {
    const double* w = u + 5 * at;
    const double inverse = 1 / w[0];
    rho_inverse[at] = inverse;
    us[at] = w[1] * inverse;
    vs[at] = w[2] * inverse;
    ws[at] = w[3] * inverse;
    square[at] = 0.5 * (w[1] * w[1] + w[2] * w[2] + w[3] * w[3]) * inverse;
    qs[at] = square[at] * inverse;
    if (speed != nullptr) speed[at] = std::sqrt(c1c2 * inverse * (w[4] - square[at]));
  }
}

// The fluxes of one direction at one point.
template <int axis>
struct Fluxes {
  const double *u, *rho_inverse, *velocity[3], *square, *qs;
  double convection, second, viscous;  // 1 / 2h, the dissipation / h^2, the viscosity / h^2

  explicit Fluxes(Flow& flow)
      : u(flow.u.get()),
        rho_inverse(flow.rho_inverse.get()),
        velocity{flow.us.get(), flow.vs.get(), flow.ws.get()},
        square(flow.square.get()),
        qs(flow.qs.get()) {
    const auto inverse_h = static_cast<double>(flow.n - 1);
    convection = inverse_h / 2;
    second = second_dissipation[axis] * inverse_h * inverse_h;
    viscous = c3c4 * inverse_h * inverse_h;
  }

  // Adds to the five numbers of rhs at point c, whose neighbours are a (before) and b (after).
  void add(Index a, Index c, Index b, double* rhs) const {
    constexpr int along = axis + 1;
    const double *ua = u + 5 * a, *uc = u + 5 * c, *ub = u + 5 * b;
    const double va = velocity[axis][a], vc = velocity[axis][c], vb = velocity[axis][b];
    const auto bend = [&](const double* field) { return field[b] - 2 * field[c] + field[a]; };
    for (int m = 0; m < 5; ++m) rhs[m] += second * (ub[m] - 2 * uc[m] + ua[m]);
    rhs[0] -= convection * (ub[along] - ua[along]);
    for (int m = 1; m <= 3; ++m) {
      const double weight = m == along ? 4.0 / 3.0 : 1.0;
      rhs[m] += weight * viscous * bend(velocity[m - 1]) - convection * (ub[m] * vb - ua[m] * va);
    }
    rhs[along] -= convection * c2 * ((ub[4] - square[b]) - (ua[4] - square[a]));
    rhs[4] +=
        viscous * ((1 - c1c5) * bend(qs) + (vb * vb - 2 * vc * vc + va * va) / 6 +
                   c1c5 * (ub[4] * rho_inverse[b] - 2 * uc[4] * rho_inverse[c] +
                           ua[4] * rho_inverse[a])) -
        convection * ((c1 * ub[4] - c2 * square[b]) * vb - (c1 * ua[4] - c2 * square[a]) * va);
  }

  // Subtracts the fourth-order dissipation; `at` is the place of c along the axis.
  void dissipate(Index c, Index stride, Index at, Index n, double* rhs) const {
    const double* weight = fourth_difference(at, n);
    const Index before = at > 2 ? 2 * stride : 0;  // where its weight is 0 the point may not exist
    const Index after = at < n - 3 ? 2 * stride : 0;
    const double *u0 = u + 5 * (c - before), *u1 = u + 5 * (c - stride), *u2 = u + 5 * c,
                 *u3 = u + 5 * (c + stride), *u4 = u + 5 * (c + after);
    for (int m = 0; m < 5; ++m) {
      rhs[m] -= dissipation * (weight[0] * u0[m] + weight[1] * u1[m] + weight[2] * u2[m] +
                               weight[3] * u3[m] + weight[4] * u4[m]);
    }
  }
};

template <int axis>
void add_direction(Flow& flow) {
  const Fluxes<axis> fluxes(flow);
  const Index stride = flow.stride(axis);
  double* rhs = flow.rhs.get();
  NPB_PARALLEL()
  for (Index k = flow.inner_first(); k < flow.inner_last(); ++k) {
    for (Index j = 1; j < flow.n - 1; ++j) {
      for (Index i = 1; i < flow.n - 1; ++i) {
        const Index c = flow.point(i, j, k);
        fluxes.add(c - stride, c, c + stride, rhs + 5 * c);
        fluxes.dissipate(c, stride, axis == 0 ? i : axis == 1 ? j : k, flow.n, rhs + 5 * c);
      }
    }
  }
}

}  // namespace

const double* fourth_difference(Index at, Index n) {
  static constexpr double weights[5][5] = {
      {0, 0, 5, -4, 1}, {0, -4, 6, -4, 1}, {1, -4, 6, -4, 1}, {1, -4, 6, -4, 0}, {1, -4, 5, 0, 0}};
  if (at <= 2) return weights[at - 1];
  if (at >= n - 3) return weights[at - n + 6];
  return weights[2];
}

void compute_residual(Flow& flow) {
  derive(flow);
  const Index from = 5 * flow.point(0, 0, flow.first);
  const Index to = 5 * flow.point(0, 0, flow.last);
  std::copy(flow.forcing.get() + from, flow.forcing.get() + to, flow.rhs.get() + from);
  add_direction<0>(flow);
  add_direction<1>(flow);
  add_direction<2>(flow);
}

void scale_residual(Flow& flow) {
  double* rhs = flow.rhs.get();
  const Index from = 5 * flow.point(0, 0, flow.first);
  const Index to = 5 * flow.point(0, 0, flow.last);
  NPB_PARALLEL()
  for (Index at = from; at < to; ++at) rhs[at] *= flow.dt;
}

}  // namespace npb::flow
