// SPDX-License-Identifier: BSD-3-Clause
//
// Heat in a plate of N x N cells on a GPU, whose first row is kept at 1 and whose other edges at 0.
// Heat comes one row further in each step. So most pages stay as they are, and log mode stores those
// that changed.
#include "job.hpp"

int main(int argc, char** argv) {
  gpu::Job job(argc, argv);
  const long n = job.n, cells = n * n;
  const gpu::Vector u = gpu::Vector::of(cells), next = gpu::Vector::of(cells);
  job.array("u", u, static_cast<std::uint64_t>(cells), PERDURE_LOG);
  if (!job.restarts()) {
    gpu::for_each(job.stream, cells, [=] ON_GPU(long i) { u[i] = i < n ? 1 : 0; });
  }
  while (job.goes_on()) {
    gpu::for_each(job.stream, cells, [=] ON_GPU(long i) {
      const long y = i / n, x = i % n;
      const bool inside = y > 0 && y < n - 1 && x > 0 && x < n - 1;
      next[i] = inside ? (u[i - 1] + u[i + 1] + u[i - n] + u[i + n]) / 4 : u[i];
    });
    gpu::for_each(job.stream, cells, [=] ON_GPU(long i) { u[i] = next[i]; });
    job.end_step();
  }
  job.end(gpu::read(job.stream, u, cells));
}
