// SPDX-License-Identifier: BSD-3-Clause
#include "eddy/exact.hpp"

#include <cmath>

#include "npb/ranks.hpp"

namespace eddy {
namespace {

constexpr double wind[2] = {1, 0.3};
constexpr double eigenvalue = 25;  // 5^2 = 3^2 + 4^2

// The mean of (|v|^2 + 25 psi^2) / 2 over the square. That of |v|^2 is 25 times that of psi^2, to
// which the three waves of psi add 1/64, 1/50 and 1/50.
constexpr double head_mean = eigenvalue * (1.0 / 64 + 1.0 / 50 + 1.0 / 50);

// The stream function and the flow of the eddies alone.
double stream(double x, double y) {
  return std::cos(3 * x) * std::sin(4 * y) / 4 - std::cos(5 * y) / 5 - std::sin(5 * x) / 5;
}

Flow eddies(double x, double y) {
  const double psi = stream(x, y);
  const double vx = std::cos(3 * x) * std::cos(4 * y) + std::sin(5 * y);
  const double vy = 0.75 * std::sin(3 * x) * std::sin(4 * y) + std::cos(5 * x);
  return {vx, vy, head_mean - 0.5 * (vx * vx + vy * vy + eigenvalue * psi * psi)};
}

double decay_at(double time) {
  return std::exp(-eigenvalue * viscosity * time);
}

// Calls use(place in a field, exact flow there) for this rank's cells; each number of the flow is
// that at its place in the cell.
template <typename Use>
void for_cells(const Grid& grid, double time, Use use) {
  const double h = grid.h();
  for (Index j = 1; j <= grid.rows; ++j) {
    const double low = static_cast<double>(grid.first + j - 1) * h;
    for (Index i = 1; i <= grid.n; ++i) {
      const double left = static_cast<double>(i - 1) * h;
      use(grid.at(i, j), Flow{exact(left, low + h / 2, time).vx, exact(left + h / 2, low, time).vy,
                              exact(left + h / 2, low + h / 2, time).pr});
    }
  }
}

}  // namespace

Flow exact(double x, double y, double time) {
  const double decay = decay_at(time);
  const Flow flow = eddies(x - wind[0] * time, y - wind[1] * time);
  return {wind[0] + decay * flow.vx, wind[1] + decay * flow.vy, decay * decay * flow.pr};
}

void set_velocity(const Grid& grid, double time, double* vx, double* vy) {
  const double h = grid.h();
  const double scale = decay_at(time) / h;
  for (Index j = 1; j <= grid.rows; ++j) {
    const double y = static_cast<double>(grid.first + j - 1) * h - wind[1] * time;
    for (Index i = 1; i <= grid.n; ++i) {
      const double x = static_cast<double>(i - 1) * h - wind[0] * time;
      const double corner = stream(x, y);
      vx[grid.at(i, j)] = wind[0] + scale * (stream(x, y + h) - corner);
      vy[grid.at(i, j)] = wind[1] - scale * (stream(x + h, y) - corner);
    }
  }
}

void set_pressure(const Grid& grid, double time, double* pr) {
  const double h = grid.h();
  for (Index j = 1; j <= grid.rows; ++j) {
    const double y = (static_cast<double>(grid.first + j) - 0.5) * h;
    for (Index i = 1; i <= grid.n; ++i) {
      pr[grid.at(i, j)] = exact((static_cast<double>(i) - 0.5) * h, y, time).pr;
    }
  }
}

Flow error_of(const Grid& grid, double time, const double* vx, const double* vy, const double* pr) {
  double sums[3] = {}, eddy_sums[3] = {};
  const auto add = [](double* to, double x, double y, double p) {
    to[0] += x * x;
    to[1] += y * y;
    to[2] += p * p;
  };
  for_cells(grid, time, [&](Index at, const Flow& flow) {
    add(sums, vx[at] - flow.vx, vy[at] - flow.vy, pr[at] - flow.pr);
  });
  for_cells(grid, 0, [&](Index, const Flow& flow) {
    add(eddy_sums, flow.vx - wind[0], flow.vy - wind[1], flow.pr);
  });
  double error[3];
  for (int m = 0; m < 3; ++m) {
    error[m] = std::sqrt(npb::ranks::sum(sums[m]) / npb::ranks::sum(eddy_sums[m]));
  }
  return {error[0], error[1], error[2]};
}

}  // namespace eddy
