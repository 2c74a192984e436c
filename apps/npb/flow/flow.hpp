// SPDX-License-Identifier: BSD-3-Clause
//
// Flow: the fields of SP, BT and LU on the part of the grid that a rank has, and the constants of
// their equations (RNR-94-007, section 3.1). The three programs solve the same discrete equations
// by different iterations.
//
// The grid is a cube of n^3 points, x fastest. A rank has the planes first to last - 1 along z. If
// there are several ranks, two planes of ghosts lie on each side, of which those outside of the
// cube are never used. A point has five numbers in u, rhs and forcing, and one in the fields that
// are derived from u.
//
// rhs is 0 on the boundary of the cube, where u never changes.
#pragma once

#include "npb/array.hpp"
#include "npb/flow/problem.hpp"

namespace npb::flow {

constexpr double c1 = 1.4;  // ratio of the heat capacities
constexpr double c2 = 0.4;
constexpr double c1c2 = c1 * c2;
constexpr double c3c4 = 0.1;       // viscosity
constexpr double c1c5 = 1.4 * c1;  // heat conduction
constexpr double dissipation = 0.25;
constexpr double second_dissipation[3] = {0.75, 0.75, 1.0};  // along x, y, z

struct Flow {
  Index n = 0;
  Index first = 0, last = 0;  // planes of this rank
  Index base = 0;             // the plane where the arrays begin
  Index planes = 0;           // in the arrays
  double dt = 0;

  Array<double> u, rhs, forcing;
  Array<double> rho_inverse, us, vs, ws;  // of the velocity: us, vs, ws
  Array<double> square;                   // kinetic energy of a volume
  Array<double> qs;                       // of a mass
  Array<double> speed;                    // of sound; SP alone has it

  Index point(Index i, Index j, Index k) const { return ((k - base) * n + j) * n + i; }
  Index points() const { return n * n * planes; }  // of the arrays
  Index stride(int axis) const { return axis == 0 ? 1 : axis == 1 ? n : n * n; }
  Index inner_first() const { return first > 1 ? first : 1; }  // planes off the boundary
  Index inner_last() const { return last < n - 1 ? last : n - 1; }
  double* velocity(int axis) { return (axis == 0 ? us : axis == 1 ? vs : ws).get(); }
};

enum class Speed { left_out, derived };

// Collective. Throws std::runtime_error if there are more ranks than the planes suffice for. The
// forcing and u are set: the exact solution is steady under the forcing.
Flow make_flow(const ProblemClass& problem, Speed speed);

// Fourth differences: the weights of the points -2 to 2 from point `at` along an axis. They are
// one-sided beside the boundary, and those of points that are then left out are 0.
const double* fourth_difference(Index at, Index n);

// Collective. The ghosts of u.
void fill_ghosts(Flow& flow);

// rhs = forcing + the discrete operator applied to u, and the fields derived from u.
void compute_residual(Flow& flow);

// rhs *= dt
void scale_residual(Flow& flow);

// u += factor rhs, off the boundary
void add_change(Flow& flow, double factor);

// Collective. Root mean squares: of rhs as compute_residual leaves it, and of the difference of u
// from the exact solution.
Five residual_norm(const Flow& flow);
Five error_norm(const Flow& flow);

}  // namespace npb::flow
