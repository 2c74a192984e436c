// SPDX-License-Identifier: BSD-3-Clause
//
// An iteration, with the state as it stands when a commit may have saved it:
//
//   product = A p            reads p with its halo
//   alpha   = r·r / p·product
//   x      += alpha p
//   r      -= alpha product
//   beta    = new r·r / r·r
//   p       = r + beta p     and its boundary planes go to the neighbours
//   commit                   x, r, p with the halo, r·r and the iteration
//
// As the halo is part of what is committed, a restart needs no communication, and the put of the
// next iteration never touches the committed copy of p. A put counts as a store of its target: the
// fence that opens the exchange comes after before_writing_p() on every rank.
#include "solver.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "job/collective.hpp"
#include "job/stopwatch.hpp"
#include "vectors.hpp"

namespace hpccg {
namespace {

// Far below any rounding error, and far above where r·r or p·Ap would underflow to a division by 0.
constexpr double rtrans_min = 1e-280;

}  // namespace

Solver::Solver(const Grid& grid, const Matrix& matrix, const double* b, State& state, Halo& halo)
    : grid_(grid), matrix_(matrix), b_(b), state_(state), halo_(halo), product_(grid.points()) {}

void Solver::start() {
  const Vectors first = state_.target();
  const std::size_t points = grid_.points();
  std::fill(first.x, first.x + points, 0.0);
  std::copy(first.x, first.x + points, first.p);
  halo_.exchange(first.p);
  multiply(matrix_, first.p, product_.get());
  add_scaled(points, b_, -1.0, product_.get(), first.r);
  std::copy(first.r, first.r + points, first.p);
  halo_.exchange(first.p);
  state_.scalars() = {0, job::sum_over_ranks(dot(points, first.r, first.r))};
  state_.advance();
}

double Solver::update_x_and_r(double alpha) {
  alignas(64) std::array<double, block_points> x_block;
  alignas(64) std::array<double, block_points> r_block;
  const Vectors from = state_.source();
  const Vectors to = state_.target();
  const bool streams = state_.streams();
  double rtrans = 0;
  for (std::size_t i = 0; i < grid_.points(); i += block_points) {
    const std::size_t count = std::min(block_points, grid_.points() - i);
    double* x = streams ? x_block.data() : to.x + i;
    double* r = streams ? r_block.data() : to.r + i;
    add_scaled(count, from.x + i, alpha, from.p + i, x);
    add_scaled(count, from.r + i, -alpha, product_.get() + i, r);
    rtrans += dot_block(count, r, r);
    if (!streams) continue;
    state_.store(VectorName::x, i, count, x);
    state_.store(VectorName::r, i, count, r);
  }
  return rtrans;
}

void Solver::update_p(double beta) {
  alignas(64) std::array<double, block_points> p_block;
  const Vectors from = state_.source();
  const Vectors to = state_.target();
  const bool streams = state_.streams();
  for (std::size_t i = 0; i < grid_.points(); i += block_points) {
    const std::size_t count = std::min(block_points, grid_.points() - i);
    double* p = streams ? p_block.data() : to.p + i;
    add_scaled(count, to.r + i, beta, from.p + i, p);
    if (streams) state_.store(VectorName::p, i, count, p);
  }
}

void Solver::iterate() {
  Scalars& scalars = state_.scalars();
  const double p_product =
      job::sum_over_ranks(multiply(matrix_, state_.source().p, product_.get()));
  state_.before_writing_x_and_r();
  const double rtrans = job::sum_over_ranks(update_x_and_r(scalars.rtrans / p_product));
  state_.before_writing_p();
  update_p(rtrans / scalars.rtrans);
  halo_.exchange(state_.target().p);
  scalars.rtrans = rtrans;
  ++scalars.iteration;
}

void Solver::run(const Options& options) {
  const Scalars& scalars = state_.scalars();
  const double b_norm = std::sqrt(job::sum_over_ranks(dot(grid_.points(), b_, b_)));
  while (!state_.ends() && scalars.iteration < options.iterations && scalars.rtrans > rtrans_min &&
         std::sqrt(scalars.rtrans) > options.tolerance * b_norm) {
    const job::Stopwatch watch;
    iterate();
    if (scalars.iteration % options.every == 0 && state_.commit_due()) {
      state_.commit();
    } else {
      state_.advance();
    }
    iteration_s_.push_back(watch.seconds());
    if (grid_.rank == 0 && options.print_every > 0 &&
        scalars.iteration % options.print_every == 0) {
      std::printf("iteration %llu residual %.6e\n",
                  static_cast<unsigned long long>(scalars.iteration), std::sqrt(scalars.rtrans));
      std::fflush(stdout);
    }
  }
  state_.finish();
}

}  // namespace hpccg
