// SPDX-License-Identifier: BSD-3-Clause
//
// hpccg: conjugate gradients on a 27-point grid, in the manner of the HPCCG mini-application; its
// protection is chosen by a flag. README.md shows how to run it.
#include <algorithm>
#include <memory>
#include <vector>

#include "halo.hpp"
#include "job/collective.hpp"
#include "job/run.hpp"
#include "job/stopwatch.hpp"
#include "matrix.hpp"
#include "options.hpp"
#include "report.hpp"
#include "solver.hpp"
#include "state.hpp"

namespace hpccg {
namespace {

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

std::unique_ptr<Halo> make_halo(const Grid& grid, State& state) {
  const auto windows = state.own_windows();
  if (!windows.empty()) return std::make_unique<Halo>(grid, windows);
  return std::make_unique<Halo>(grid, state.windows(), state.write_protected());
}

void solve(const Grid& grid, const Options& options) {
  Times times;
  const job::Stopwatch matrix_watch;
  const Matrix matrix = make_matrix(grid);
  Buffer<double> b(grid.points());
  sum_rows(matrix, b.get());
  MPI_Barrier(MPI_COMM_WORLD);
  times.matrix_s = matrix_watch.seconds();

  const job::Stopwatch start_watch;
  const auto state = make_state(grid, options);
  const std::uint64_t restored_version = state->restore();
  const auto halo = make_halo(grid, *state);
  Solver solver(grid, matrix, b.get(), *state, *halo);
  if (restored_version == 0) solver.start();
  const std::uint64_t first_iteration = state->scalars().iteration;
  MPI_Barrier(MPI_COMM_WORLD);
  times.start_s = start_watch.seconds();

  const job::Stopwatch loop_watch;
  const double cpu_before_s = job::cpu_seconds();
  solver.run(options);
  MPI_Barrier(MPI_COMM_WORLD);
  times.loop_s = loop_watch.seconds();
  times.iteration_median_s = median(solver.iteration_s());
  times.loop_cpu_s = job::cpu_seconds() - cpu_before_s;
  print_report(grid, options, times, restored_version, first_iteration, *state);
}

}  // namespace
}  // namespace hpccg

int main(int argc, char** argv) {
  return job::run(argc, argv, "hpccg", [&](bool speaks) {
    const hpccg::Options options = hpccg::parse_options(argc, argv, speaks);
    const int rank = job::this_rank();
    hpccg::solve({options.nx, options.ny, options.nz, rank, job::rank_count()}, options);
  });
}
