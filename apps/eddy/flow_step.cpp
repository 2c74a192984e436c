// SPDX-License-Identifier: BSD-3-Clause
#include "eddy/flow_step.hpp"

#include <algorithm>
#include <cmath>

#include "eddy/exact.hpp"
#include "npb/parallel.hpp"
#include "npb/ranks.hpp"

namespace eddy {
namespace {

// Momentum that the velocities carry out of the place of vx at `at`, through the sides of a cell
// around it.
double convection_x(const double* vx, const double* vy, Index at, Index row, double inverse_h) {
  const double right = vx[at] + vx[at + 1], left = vx[at - 1] + vx[at];
  const double above = (vy[at + row - 1] + vy[at + row]) * (vx[at] + vx[at + row]);
  const double below = (vy[at - 1] + vy[at]) * (vx[at - row] + vx[at]);
  return 0.25 * inverse_h * (right * right - left * left + above - below);
}

double convection_y(const double* vx, const double* vy, Index at, Index row, double inverse_h) {
  const double above = vy[at] + vy[at + row], below = vy[at - row] + vy[at];
  const double right = (vx[at + 1 - row] + vx[at + 1]) * (vy[at] + vy[at + 1]);
  const double left = (vx[at - row] + vx[at]) * (vy[at - 1] + vy[at]);
  return 0.25 * inverse_h * (above * above - below * below + right - left);
}

double divergence(const double* vx, const double* vy, Index at, Index row, double inverse_h) {
  return inverse_h * (vx[at + 1] - vx[at] + vy[at + row] - vy[at]);
}

// What a level leaves to the one after the next: its part of the difference in time, and of the
// convection there.
double history_of(double convection, double velocity, double dt) {
  return convection - velocity / (2 * dt);
}

// The right sides of the implicit step, in pairs; the level before becomes the present one.
void predict_x(const Grid& grid, double dt, State& state, double* pairs) {
  const double *vx = state.vx.get(), *vy = state.vy.get(), *pr = state.pr.get();
  double* before = state.x_before.get();
  const double inverse_h = 1 / grid.h();
  const Index n = grid.n, rows = grid.rows, row = grid.row();
  NPB_PARALLEL()
  for (Index j = 0; j < rows; ++j) {
    const Index from = grid.at(1, j + 1);
    for (Index i = 0; i < n; ++i) {
      const Index at = from + i;
      const double cx = convection_x(vx, vy, at, row, inverse_h);
      pairs[2 * (j * n + i)] =
          2 * (vx[at] / dt - cx) + before[at] - inverse_h * (pr[at] - pr[at - 1]);
      before[at] = history_of(cx, vx[at], dt);
    }
  }
}

void predict_y(const Grid& grid, double dt, State& state, double* pairs) {
  const double *vx = state.vx.get(), *vy = state.vy.get(), *pr = state.pr.get();
  double* before = state.y_before.get();
  const double inverse_h = 1 / grid.h();
  const Index n = grid.n, rows = grid.rows, row = grid.row();
  NPB_PARALLEL()
  for (Index j = 0; j < rows; ++j) {
    const Index from = grid.at(1, j + 1);
    for (Index i = 0; i < n; ++i) {
      const Index at = from + i;
      const double cy = convection_y(vx, vy, at, row, inverse_h);
      pairs[2 * (j * n + i) + 1] =
          2 * (vy[at] / dt - cy) + before[at] - inverse_h * (pr[at] - pr[at - row]);
      before[at] = history_of(cy, vy[at], dt);
    }
  }
}

// One of each pair, with the ghosts.
void take(const Grid& grid, const double* pairs, double* field) {
  NPB_PARALLEL()
  for (Index j = 1; j <= grid.rows; ++j) {
    for (Index i = 1; i <= grid.n; ++i) {
      field[grid.at(i, j)] = pairs[2 * ((j - 1) * grid.n + i - 1)];
    }
  }
  fill_ghosts(grid, field);
}

// The potential whose gradient, over `rate`, is what the velocities have too much.
void find_potential(const Grid& grid, double rate, Work& work) {
  const double *vx = work.vx.get(), *vy = work.vy.get();
  double* pairs = work.elliptic.pairs();
  const double inverse_h = 1 / grid.h();
  NPB_PARALLEL()
  for (Index j = 1; j <= grid.rows; ++j) {
    for (Index i = 1; i <= grid.n; ++i) {
      const Index to = 2 * ((j - 1) * grid.n + i - 1);
      pairs[to] = -rate * divergence(vx, vy, grid.at(i, j), grid.row(), inverse_h);
      pairs[to + 1] = 0;
    }
  }
  work.elliptic.solve(0, 1);
  take(grid, pairs, work.potential.get());
}

void correct_velocity(const Grid& grid, double rate, const Work& work, State& state) {
  const double *potential = work.potential.get(), *x = work.vx.get(), *y = work.vy.get();
  double* vx = state.vx.get();
  double* vy = state.vy.get();
  const double scale = 1 / (rate * grid.h());
  const Index n = grid.n, rows = grid.rows, row = grid.row();
  NPB_PARALLEL()
  for (Index j = 1; j <= rows; ++j) {
    const Index from = grid.at(1, j);
    for (Index at = from; at < from + n; ++at) {
      vx[at] = x[at] - scale * (potential[at] - potential[at - 1]);
    }
  }
  NPB_PARALLEL()
  for (Index j = 1; j <= rows; ++j) {
    const Index from = grid.at(1, j);
    for (Index at = from; at < from + n; ++at) {
      vy[at] = y[at] - scale * (potential[at] - potential[at - row]);
    }
  }
}

void correct_pressure(const Grid& grid, const Work& work, State& state) {
  const double *potential = work.potential.get(), *x = work.vx.get(), *y = work.vy.get();
  double* pr = state.pr.get();
  const double inverse_h = 1 / grid.h();
  const Index n = grid.n, rows = grid.rows, row = grid.row();
  NPB_PARALLEL()
  for (Index j = 1; j <= rows; ++j) {
    const Index from = grid.at(1, j);
    for (Index at = from; at < from + n; ++at) {
      pr[at] += potential[at] - viscosity * divergence(x, y, at, row, inverse_h);
    }
  }
}

void fill_velocity_ghosts(const Grid& grid, State& state) {
  fill_ghosts(grid, state.vx.get());
  fill_ghosts(grid, state.vy.get());
}

}  // namespace

State::State(const Grid& grid)
    : vx(make_field(grid, npb::Use::object)),
      vy(make_field(grid, npb::Use::object)),
      pr(make_field(grid, npb::Use::object)),
      x_before(make_field(grid, npb::Use::object)),
      y_before(make_field(grid, npb::Use::object)) {}

std::vector<npb::Carried> State::carried(const Grid& grid) {
  const Index size = grid.size();
  return {{"vx", vx.get(), size},
          {"vy", vy.get(), size},
          {"pr", pr.get(), size},
          {"x_before", x_before.get(), size},
          {"y_before", y_before.get(), size}};
}

Work::Work(const Grid& grid)
    : vx(make_field(grid, npb::Use::other)),
      vy(make_field(grid, npb::Use::other)),
      potential(make_field(grid, npb::Use::other)),
      elliptic(grid) {}

void set_initial(const Grid& grid, double dt, State& state) {
  double *vx = state.vx.get(), *vy = state.vy.get();
  double *x_before = state.x_before.get(), *y_before = state.y_before.get();
  set_velocity(grid, -dt, vx, vy);
  fill_velocity_ghosts(grid, state);
  for (Index j = 1; j <= grid.rows; ++j) {
    for (Index i = 1; i <= grid.n; ++i) {
      const Index at = grid.at(i, j);
      const double cx = convection_x(vx, vy, at, grid.row(), 1 / grid.h());
      const double cy = convection_y(vx, vy, at, grid.row(), 1 / grid.h());
      x_before[at] = history_of(cx, vx[at], dt);
      y_before[at] = history_of(cy, vy[at], dt);
    }
  }
  set_velocity(grid, 0, vx, vy);
  set_pressure(grid, 0, state.pr.get());
}

void advance(const Grid& grid, double dt, State& state, Work& work) {
  const double rate = 1.5 / dt;  // by which the formula weighs the new level
  fill_velocity_ghosts(grid, state);
  fill_ghosts(grid, state.pr.get());
  double* pairs = work.elliptic.pairs();
  predict_x(grid, dt, state, pairs);
  predict_y(grid, dt, state, pairs);
  work.elliptic.solve(rate, viscosity);
  take(grid, pairs, work.vx.get());
  take(grid, pairs + 1, work.vy.get());
  find_potential(grid, rate, work);
  correct_velocity(grid, rate, work, state);
  correct_pressure(grid, work, state);
}

double divergence_max(const Grid& grid, State& state) {
  fill_velocity_ghosts(grid, state);
  const double *vx = state.vx.get(), *vy = state.vy.get();
  double max = 0;
  for (Index j = 1; j <= grid.rows; ++j) {
    for (Index i = 1; i <= grid.n; ++i) {
      const double d = divergence(vx, vy, grid.at(i, j), grid.row(), 1 / grid.h());
      max = std::max(max, std::abs(d));
    }
  }
  return npb::ranks::max(max);
}

}  // namespace eddy
