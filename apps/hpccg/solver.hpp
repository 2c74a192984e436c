// SPDX-License-Identifier: BSD-3-Clause
//
// Solver: conjugate gradients on a State.
#pragma once

#include <vector>

#include "grid.hpp"
#include "halo.hpp"
#include "matrix.hpp"
#include "options.hpp"
#include "state.hpp"

namespace hpccg {

class Solver {
 public:
  // `b` has grid.points() elements. All must outlive the solver.
  Solver(const Grid& grid, const Matrix& matrix, const double* b, State& state, Halo& halo);

  // Collective: x = 0, r = b - A x, p = r.
  void start();

  // Collective: goes on from the current iterate to options.iterations or the tolerance, and
  // commits each options.every iterations.
  void run(const Options& options);

  // What each iteration of run() took on this rank, with its commit if it had one.
  const std::vector<double>& iteration_s() const { return iteration_s_; }

 private:
  void iterate();
  double update_x_and_r(double alpha);
  void update_p(double beta);

  const Grid grid_;
  const Matrix& matrix_;
  const double* b_;
  State& state_;
  Halo& halo_;
  Buffer<double> product_;  // A p
  std::vector<double> iteration_s_;
};

}  // namespace hpccg
