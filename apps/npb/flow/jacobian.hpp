// SPDX-License-Identifier: BSD-3-Clause
//
// The linearised operator that BT and LU invert (RNR-94-007, section 3.2): the derivatives of the
// fluxes of one direction by the five unknowns, without the fourth-order dissipation. A block is
// 5 x 5; block(point) times a change w of the unknowns there is written out, which takes fewer
// operations than the matrix does.
//
// With h the distance of points, F the derivative of the inviscid flux at a point, N that of its
// viscous flux without the difference, and d the second-order dissipation, the row of a point is
//   before    -dt/2h F - dt/h^2 (N + d)    at the point before
//   diagonal  1 + 2 dt/h^2 (N + d)         at the point itself
//   after      dt/2h F - dt/h^2 (N + d)    at the point after
// of which LU adds up the directions and BT takes them one by one.
#pragma once

#include "npb/flow/flow.hpp"

namespace npb::flow {

// A point as the derivatives see it.
struct State {
  State(const Flow& flow, Index at)
      : rho_inverse(flow.rho_inverse.get()[at]), kinetic(flow.qs.get()[at]) {
    const double* u = flow.u.get() + 5 * at;
    for (int m = 0; m < 3; ++m) velocity[m] = u[1 + m] * rho_inverse;
    energy = u[4] * rho_inverse;
  }
  double rho_inverse, velocity[3];
  double kinetic, energy;  // of a mass
};

// dt / 2h and dt / h^2.
struct Steps {
  explicit Steps(const Flow& flow) {
    const auto inverse_h = static_cast<double>(flow.n - 1);
    first = flow.dt * inverse_h / 2;
    second = flow.dt * inverse_h * inverse_h;
  }
  double first, second;
};

// product = (convection F - second (N + d)) w, for `columns` changes w side by side. `convection`
// is -dt/2h for the point before, and dt/2h for the point after.
template <int axis, std::size_t columns>
inline void multiply_block(const State& state, double convection, double second,
                           const double (&w)[5][columns], double (&product)[5][columns]) {
  constexpr int along = axis + 1;
  const double* v = state.velocity;
  const double viscous = second * c3c4 * state.rho_inverse;
  const double dissipated = second * second_dissipation[axis];
  const double enthalpy = c1 * state.energy - c2 * state.kinetic;
  for (std::size_t c = 0; c < columns; ++c) {
    // The change of each momentum beyond that which the velocity carries along.
    const double s[3] = {w[1][c] - v[0] * w[0][c], w[2][c] - v[1] * w[0][c],
                         w[3][c] - v[2] * w[0][c]};
    const double work = v[0] * s[0] + v[1] * s[1] + v[2] * s[2];
    const double pressure = c2 * (w[4][c] - work - state.kinetic * w[0][c]);
    product[0][c] = convection * w[along][c] - dissipated * w[0][c];
    for (int m = 1; m <= 3; ++m) {
      const double weight = m == along ? 4.0 / 3.0 : 1.0;
      product[m][c] = convection * (v[axis] * w[m][c] + v[m - 1] * s[axis]) -
                      viscous * weight * s[m - 1] - dissipated * w[m][c];
    }
    product[along][c] += convection * pressure;
    product[4][c] = convection * (v[axis] * (w[4][c] + pressure) + enthalpy * s[axis]) -
                    viscous * ((1 - c1c5) * work + v[axis] * s[axis] / 3 +
                               c1c5 * (w[4][c] - state.energy * w[0][c])) -
                    dissipated * w[4][c];
  }
}

// The diagonal block is 0 above its diagonal, and its first three rows have their first column.
struct DiagonalBlock {
  double density;      // row 0
  double momentum[3];  // rows 1 to 3, their diagonal ...
  double carried[3];   // ... and column 0
  double energy[5];    // row 4
};

// Of one axis: weights 4/3 along it and 1 across, axes = 1. Of the sum of the three: weights 10/3,
// axes = 3. `dissipated` is the sum of the dissipations.
inline DiagonalBlock diagonal_block(const State& state, double second, const double (&weight)[3],
                                    double axes, double dissipated) {
  const double viscous = 2 * second * c3c4 * state.rho_inverse;
  DiagonalBlock block;
  block.density = 1 + 2 * second * dissipated;
  block.energy[0] = -viscous * axes * c1c5 * state.energy;
  for (int m = 0; m < 3; ++m) {
    block.momentum[m] = block.density + viscous * weight[m];
    block.carried[m] = -viscous * weight[m] * state.velocity[m];
    block.energy[1 + m] = viscous * (weight[m] - axes * c1c5) * state.velocity[m];
    block.energy[0] -= state.velocity[m] * block.energy[1 + m];
  }
  block.energy[4] = block.density + viscous * axes * c1c5;
  return block;
}

}  // namespace npb::flow
