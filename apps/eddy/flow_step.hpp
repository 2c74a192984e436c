// SPDX-License-Identifier: BSD-3-Clause
//
// A step of time of the incompressible Navier-Stokes equations: second order in time and space.
//
// The derivative in time is that of the backward differentiation formula of order 2, convection is
// extrapolated from two levels, diffusion is implicit. The step is fractional: velocities that
// obey the old pressure are made divergence-free, which corrects the pressure (van Kan, 1986, in
// the rotational form of Timmermans et al., 1996). On a periodic grid that splits nothing off: the
// step is exactly the implicit one. Convection is that of Harlow and Welch (1965).
#pragma once

#include <vector>

#include "eddy/elliptic.hpp"
#include "eddy/grid.hpp"
#include "npb/carried.hpp"

namespace eddy {

// What a step leaves to the next: velocity and pressure, and of the level before, for each
// velocity, its convection, the divergence of v v, less itself over 2 dt: the step needs no more of
// them. Ghosts are not part of it.
struct State {
  explicit State(const Grid& grid);
  std::vector<npb::Carried> carried(const Grid& grid);
  Array<double> vx, vy, pr;
  Array<double> x_before, y_before;
};

// What a step makes anew.
struct Work {
  explicit Work(const Grid& grid);
  Array<double> vx, vy;  // before the projection
  Array<double> potential;
  Elliptic elliptic;
};

// Collective. The exact solution at time 0, and at time -dt as the level before.
void set_initial(const Grid& grid, double dt, State& state);

// Collective.
void advance(const Grid& grid, double dt, State& state, Work& work);

// Collective. The largest divergence of a cell's velocities.
double divergence_max(const Grid& grid, State& state);

}  // namespace eddy
