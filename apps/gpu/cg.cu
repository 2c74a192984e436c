// SPDX-License-Identifier: BSD-3-Clause
//
// The solver of apps/hpccg on a GPU: conjugate gradients on the 27-point matrix of N x N x N points,
// diagonal 27, the others -1, whose solution is all ones. The matrix is not stored. Its state is x,
// r, p, the square of r and the step; each version is a copy of them.
#include <cmath>

#include "job.hpp"

namespace {

using gpu::Vector;

struct Ones {
  ON_GPU double operator[](long) const { return 1; }
};

// Row i of the matrix, times a vector.
template <typename Values>
ON_GPU double row(long n, long i, const Values& values) {
  const long z = i / (n * n), y = i / n % n, x = i % n;
  double sum = 28 * values[i];
  for (long c = z > 0 ? z - 1 : 0; c <= z + 1 && c < n; ++c) {
    for (long b = y > 0 ? y - 1 : 0; b <= y + 1 && b < n; ++b) {
      for (long a = x > 0 ? x - 1 : 0; a <= x + 1 && a < n; ++a) {
        sum -= values[(c * n + b) * n + a];
      }
    }
  }
  return sum;
}

class Solver {
 public:
  explicit Solver(gpu::Job& job) : job_(job), n_(job.n), points_(job.n * job.n * job.n) {
    job.array("x", x_, static_cast<std::uint64_t>(points_), PERDURE_COPY);
    job.array("r", r_, static_cast<std::uint64_t>(points_), PERDURE_COPY);
    job.array("p", p_, static_cast<std::uint64_t>(points_), PERDURE_COPY);
    job.scalar("rr", &rr_, sizeof rr_);
  }

  void begin() {
    const long n = n_;
    const Vector x = x_, r = r_, p = p_;
    gpu::for_each(job_.stream, points_, [=] ON_GPU(long i) {
      x[i] = 0;
      p[i] = r[i] = row(n, i, Ones());
    });
    rr_ = square_of_r();
  }

  void step() {
    const long n = n_;
    const Vector x = x_, r = r_, p = p_, ap = ap_;
    gpu::for_each(job_.stream, points_, [=] ON_GPU(long i) { ap[i] = row(n, i, p); });
    const double alpha =
        rr_ / sum_(job_.stream, points_, [=] ON_GPU(long i) { return p[i] * ap[i]; });
    gpu::for_each(job_.stream, points_, [=] ON_GPU(long i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * ap[i];
    });
    const double before = rr_;
    rr_ = square_of_r();
    const double beta = before > 0 ? rr_ / before : 0;
    gpu::for_each(job_.stream, points_, [=] ON_GPU(long i) { p[i] = r[i] + beta * p[i]; });
  }

  double square_of_r() {
    const Vector r = r_;
    return sum_(job_.stream, points_, [=] ON_GPU(long i) { return r[i] * r[i]; });
  }

  std::vector<double> solution() const { return gpu::read(job_.stream, x_, points_); }

 private:
  gpu::Job& job_;
  const long n_;
  const long points_;
  const Vector x_ = Vector::of(points_), r_ = Vector::of(points_), p_ = Vector::of(points_),
               ap_ = Vector::of(points_);
  gpu::Sum sum_;
  double rr_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  gpu::Job job(argc, argv);
  Solver solver(job);
  if (!job.restarts()) solver.begin();
  while (job.goes_on()) {
    solver.step();
    job.end_step();
  }
  const std::vector<double> x = solver.solution();
  double error = 0;
  for (const double each : x) error = std::fmax(error, std::fabs(each - 1));
  std::printf("error %.3g\n", error);
  job.end(x);
}
