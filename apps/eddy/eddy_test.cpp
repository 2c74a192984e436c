// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "eddy/exact.hpp"
#include "eddy/flow_step.hpp"
#include "npb/randdp.hpp"

namespace eddy {
namespace {

struct Simulation {
  Simulation(Index n, double step) : grid(make_grid(n)), dt(step), state(grid), work(grid) {
    set_initial(grid, dt, state);
  }
  void steps(int count) {
    for (int i = 0; i < count; ++i) advance(grid, dt, state, work);
  }
  std::vector<npb::Carried> carried() { return state.carried(grid); }
  Flow error(double time) const {
    return error_of(grid, time, state.vx.get(), state.vy.get(), state.pr.get());
  }

  Grid grid;
  double dt;
  State state;
  Work work;
};

// Cells of a field, without its ghosts.
std::vector<double> cells(const Grid& grid, const double* field) {
  std::vector<double> values;
  for (Index j = 1; j <= grid.rows; ++j) {
    const double* row = field + grid.at(1, j);
    values.insert(values.end(), row, row + grid.n);
  }
  return values;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += (a[i] - b[i]) * (a[i] - b[i]);
  return std::sqrt(sum / static_cast<double>(a.size()));
}

TEST(Eddy, halving_cells_and_steps_leaves_a_quarter_of_the_error) {
  std::vector<Flow> errors;
  for (const int n : {32, 64, 128}) {
    Simulation run(n, 2 * std::numbers::pi / n / 8);
    run.steps(n * 5 / 8);
    errors.push_back(run.error(run.dt * n * 5 / 8));
  }
  for (std::size_t i = 1; i < errors.size(); ++i) {
    for (double Flow::* part : {&Flow::vx, &Flow::vy, &Flow::pr}) {
      const double ratio = errors[i - 1].*part / (errors[i].*part);
      EXPECT_GT(ratio, 3.5) << "refinement " << i;
      EXPECT_LT(ratio, 4.5) << "refinement " << i;
    }
  }
}

// On one grid, where the error of space is the same in all runs. It is fine enough for that of the
// level before the first step, which is of order h^2 dt, to be small.
TEST(Eddy, halving_the_step_alone_leaves_a_quarter_of_the_change) {
  constexpr double time = 0.4;
  std::vector<std::vector<double>> vx, vy, pr;
  for (const int steps : {20, 40, 80}) {
    Simulation run(128, time / steps);
    run.steps(steps);
    vx.push_back(cells(run.grid, run.state.vx.get()));
    vy.push_back(cells(run.grid, run.state.vy.get()));
    pr.push_back(cells(run.grid, run.state.pr.get()));
  }
  for (const auto& field : {vx, vy, pr}) {
    const double ratio = distance(field[0], field[1]) / distance(field[1], field[2]);
    EXPECT_GT(ratio, 3.5);
    EXPECT_LT(ratio, 4.5);
  }
}

TEST(Eddy, no_cell_diverges_at_the_start_or_after_a_step) {
  Simulation run(64, 0.01);
  EXPECT_LT(divergence_max(run.grid, run.state), 1e-12);
  run.steps(1);
  EXPECT_LT(divergence_max(run.grid, run.state), 1e-12);
}

// Copies the cells of all carried fields but one.
void resume(Simulation& to, Simulation& from, std::size_t left_out) {
  const auto target = to.carried(), source = from.carried();
  for (std::size_t m = 0; m < target.size(); ++m) {
    if (m == left_out) continue;
    for (Index j = 1; j <= to.grid.rows; ++j) {
      const double* row = source[m].values + to.grid.at(1, j);
      std::copy(row, row + to.grid.n, target[m].values + to.grid.at(1, j));
    }
  }
}

TEST(Eddy, the_cells_of_five_fields_are_all_that_a_run_goes_on_from) {
  constexpr double dt = 0.01;
  Simulation whole(32, dt), half(32, dt);
  whole.steps(8);
  half.steps(4);
  const auto expected = whole.carried();
  ASSERT_EQ(expected.size(), 5);
  for (std::size_t left_out = 0; left_out <= expected.size(); ++left_out) {
    Simulation resumed(32, dt);
    resume(resumed, half, left_out);
    resumed.steps(4);
    const auto found = resumed.carried();
    double change = 0;
    for (std::size_t m = 0; m < expected.size(); ++m) {
      change += distance(cells(whole.grid, found[m].values), cells(whole.grid, expected[m].values));
    }
    if (left_out == expected.size()) {
      EXPECT_EQ(change, 0);
    } else {
      // A projection finds the pressure again, except for the last digits.
      const double change_min = found[left_out].values == resumed.state.pr.get() ? 0 : 1e-6;
      EXPECT_GT(change, change_min) << found[left_out].name << " is not carried";
    }
  }
}

// (shift - factor L) of the solution, by the five points, against the right side.
void expect_solved(double shift, double factor, double mean) {
  const Grid grid = make_grid(32);
  Elliptic elliptic(grid);
  npb::Random random;
  const Index n = grid.n;
  std::vector<double> right;
  for (Index i = 0; i < 2 * n * n; ++i) right.push_back(random.next() - 0.5);
  double sums[2] = {};
  for (std::size_t i = 0; i < right.size(); ++i) sums[i % 2] += right[i];
  for (std::size_t i = 0; i < right.size(); ++i) {
    right[i] += mean - sums[i % 2] / static_cast<double>(n * n);
  }
  std::copy(right.begin(), right.end(), elliptic.pairs());
  elliptic.solve(shift, factor);
  const double* f = elliptic.pairs();
  const auto at = [&](Index i, Index j, Index m) {
    return f[2 * (((j + n) % n) * n + (i + n) % n) + m];
  };
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < 2 * n; ++i) {
      const Index x = i / 2, m = i % 2;
      const double bend =
          at(x - 1, j, m) + at(x + 1, j, m) + at(x, j - 1, m) + at(x, j + 1, m) - 4 * at(x, j, m);
      const double left = shift * at(x, j, m) - factor * bend / (grid.h() * grid.h());
      ASSERT_NEAR(left, right[static_cast<std::size_t>(2 * n * j + i)], 1e-11);
    }
  }
}

TEST(Elliptic, solutions_obey_the_difference_equations) {
  expect_solved(0, 1, 0);
  expect_solved(150, 0.05, 0.25);
}

}  // namespace
}  // namespace eddy
