// SPDX-License-Identifier: BSD-3-Clause
//
// An exact solution of the Navier-Stokes equations on a periodic square (Walsh, Eddy solutions of
// the Navier-Stokes equations, 1992), the one of Nek5000's example "eddy": eddies of a stream
// function psi whose Laplacian is -25 psi are carried along by a constant wind and decay.
#pragma once

#include "eddy/grid.hpp"

namespace eddy {

constexpr double viscosity = 0.05;

struct Flow {
  double vx, vy, pr;  // pr has mean 0 over the square
};

Flow exact(double x, double y, double time);

// The velocities of this rank, ghosts left out: differences of the stream function between the
// corners of a cell, so that no cell diverges.
void set_velocity(const Grid& grid, double time, double* vx, double* vy);

// The pressure of this rank, ghosts left out.
void set_pressure(const Grid& grid, double time, double* pr);

// Collective. Root mean squares of the difference from the exact solution, over those of the eddies
// at time 0: a part of 1.
Flow error_of(const Grid& grid, double time, const double* vx, const double* vy, const double* pr);

}  // namespace eddy
