// SPDX-License-Identifier: BSD-3-Clause
//
// npb_cg: the smallest eigenvalue of a large sparse matrix by inverse iteration with conjugate
// gradients (NAS Parallel Benchmarks, RNR-94-007, section 2.2.4). ../README.md shows how to run it.
#include <algorithm>
#include <cmath>

#include "job/stopwatch.hpp"
#include "npb/array.hpp"
#include "npb/cg/classes.hpp"
#include "npb/cg/matrix.hpp"
#include "npb/loop.hpp"
#include "npb/parallel.hpp"
#include "npb/program.hpp"
#include "npb/ranks.hpp"

namespace npb::cg {
namespace {

// p and z are multiplied by the matrix: each rank has all their elements. Of x, q and r it has
// those of its rows.
struct Vectors {
  explicit Vectors(const Matrix& matrix)
      : x(matrix.rows, Use::object), q(matrix.rows), r(matrix.rows), p(matrix.n), z(matrix.n) {}
  Array<double> x, q, r, p, z;
};

double dot(const double* a, const double* b, Index count) {
  double sum = 0;
  for (Index i = 0; i < count; ++i) sum += a[i] * b[i];
  return ranks::sum(sum);
}

// z = about matrix^-1 x, by a fixed number of iterations. own_p and own_z: the elements of this
// rank's rows.
void conjugate_gradients(const Matrix& matrix, const double* x, double* z, double* p, double* q,
                         double* r) {
  const Index rows = matrix.rows;
  double* own_p = p + matrix.first_row;
  double* own_z = z + matrix.first_row;
  NPB_PARALLEL()
  for (Index i = 0; i < rows; ++i) {
    own_z[i] = 0;
    r[i] = x[i];
    own_p[i] = x[i];
  }
  double rho = dot(r, r, rows);
  for (int iteration = 0; iteration < inner_iterations; ++iteration) {
    ranks::gather_blocks(p, matrix.n);
    multiply(matrix, p, q);
    const double alpha = rho / dot(own_p, q, rows);
    NPB_PARALLEL()
    for (Index i = 0; i < rows; ++i) {
      own_z[i] += alpha * own_p[i];
      r[i] -= alpha * q[i];
    }
    const double rho_before = rho;
    rho = dot(r, r, rows);
    const double beta = rho / rho_before;
    NPB_PARALLEL()
    for (Index i = 0; i < rows; ++i) own_p[i] = r[i] + beta * own_p[i];
  }
}

// |x - matrix z|; r is overwritten.
double residual(const Matrix& matrix, const double* x, double* z, double* r) {
  ranks::gather_blocks(z, matrix.n);
  multiply(matrix, z, r);
  double sum = 0;
  for (Index i = 0; i < matrix.rows; ++i) sum += (x[i] - r[i]) * (x[i] - r[i]);
  return std::sqrt(ranks::sum(sum));
}

void normalise(const double* z, double norm, double* x, Index count) {
  NPB_PARALLEL()
  for (Index i = 0; i < count; ++i) x[i] = z[i] / norm;
}

struct Estimate {
  double zeta = 0;
  double residual = 0;
};

Estimate iterate(const Matrix& matrix, Vectors& vectors, double shift) {
  double* x = vectors.x.get();
  double* z = vectors.z.get();
  const double* own_z = z + matrix.first_row;
  conjugate_gradients(matrix, x, z, vectors.p.get(), vectors.q.get(), vectors.r.get());
  const double norm = residual(matrix, x, z, vectors.r.get());
  const double zeta = shift + 1 / dot(x, own_z, matrix.rows);
  normalise(own_z, std::sqrt(dot(own_z, own_z, matrix.rows)), x, matrix.rows);
  return {zeta, norm};
}

Result solve(const Options& options, Scratch scratch) {
  const ProblemClass& problem = class_of(options.problem_class);
  Result result = planned(options, "n = " + std::to_string(problem.n),
                          static_cast<std::uint64_t>(problem.iterations));
  const job::Stopwatch setup_watch;
  const Matrix matrix = make_matrix(problem, scratch);
  Vectors vectors(matrix);
  std::fill(vectors.x.get(), vectors.x.get() + matrix.rows, 1.0);
  result.setup_s = setup_watch.seconds();

  Estimate estimate;
  State state(options.state);
  state.object({"x", vectors.x.get(), matrix.rows});
  state.scalar("zeta", estimate.zeta);
  result.loop = run_loop(state, result.iterations,
                         [&] { estimate = iterate(matrix, vectors, problem.shift); });
  result.checks = {{"zeta", estimate.zeta, problem.zeta, tolerance}};
  return result;
}

}  // namespace
}  // namespace npb::cg

int main(int argc, char** argv) {
  using npb::cg::Scratch;
  constexpr Scratch scratches[] = {Scratch::npb32, Scratch::npb33};
  std::size_t scratch = 0;
  const npb::Program program{
      .name = "npb_cg",
      .purpose = "CG of the NAS Parallel Benchmarks: inverse iteration with conjugate gradients",
      .examples =
          "Examples:\n"
          "  npb_cg --class B                            verified, 75 iterations\n"
          "  npb_cg --class B --matrix-scratch npb3.3    without the generator's triples\n"
          "  npb_cg --class A --iterations 5 --json      too few to be verified",
      .choices = {{"--matrix-scratch",
                   "memory of the matrix generator: triples as in NPB up to 3.2, or vectors as "
                   "from 3.3 on",
                   {"npb3.2", "npb3.3"},
                   &scratch}},
      .solve = [&](const npb::Options& options) {
        return npb::cg::solve(options, scratches[scratch]);
      }};
  return npb::run_program(argc, argv, program);
}
