// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <vector>

#include "job/collective.hpp"

namespace hpccg {
namespace {

struct Blocking {
  std::size_t commits = 0;
  double median_s = 0;
  double max_s = 0;
  double total_s = 0;
};

// A commit blocks as long as it does on its slowest rank.
Blocking blocking_of(const std::vector<double>& local) {
  std::vector<double> slowest(local.size());
  MPI_Allreduce(local.data(), slowest.data(), static_cast<int>(local.size()), MPI_DOUBLE, MPI_MAX,
                MPI_COMM_WORLD);
  if (slowest.empty()) return {};
  std::sort(slowest.begin(), slowest.end());
  return {slowest.size(), slowest[slowest.size() / 2], slowest.back(),
          std::accumulate(slowest.begin(), slowest.end(), 0.0)};
}

double error_of(const double* x, std::size_t count) {
  double error = 0;
  for (std::size_t i = 0; i < count; ++i) error = std::max(error, std::abs(x[i] - 1.0));
  return error;
}

struct Figures {
  Times times;
  Blocking blocking;
  std::uint64_t state_bytes, commit_bytes, model_ns;
  std::uint64_t restored_version, first_iteration, iterations;
  double residual, error;
  std::uint64_t hash;
};

void print_json(const Grid& grid, const Options& options, const Figures& figures) {
  std::printf("{\"program\": \"hpccg\", \"protect\": \"%s\"", name_of(options.protection));
  if (options.protection == Protection::twin) {
    std::printf(", \"twin_store\": \"%s\"", name_of(options.twin_store));
  }
  std::printf(", \"ranks\": %d, \"nx\": %u, \"ny\": %u, \"nz\": %u, \"every\": %" PRIu64,
              grid.ranks, grid.nx, grid.ny, grid.nz, options.every);
  std::printf(", \"matrix_s\": %.6f, \"%s\": %.6f, \"loop_s\": %.6f", figures.times.matrix_s,
              figures.restored_version > 0 ? "restart_s" : "start_s", figures.times.start_s,
              figures.times.loop_s);
  std::printf(", \"loop_cpu_s\": %.6f, \"iteration_median_s\": %.9f", figures.times.loop_cpu_s,
              figures.times.iteration_median_s);
  std::printf(
      ", \"commits\": %zu, \"commit_median_s\": %.9f, \"commit_max_s\": %.9f"
      ", \"commit_total_s\": %.9f",
      figures.blocking.commits, figures.blocking.median_s, figures.blocking.max_s,
      figures.blocking.total_s);
  std::printf(", \"state_bytes_per_rank\": %" PRIu64 ", \"commit_bytes\": %" PRIu64
              ", \"model_ns\": %" PRIu64,
              figures.state_bytes, figures.commit_bytes, figures.model_ns);
  std::printf(", \"restored_version\": %" PRIu64 ", \"first_iteration\": %" PRIu64
              ", \"iterations\": %" PRIu64,
              figures.restored_version, figures.first_iteration, figures.iterations);
  std::printf(", \"residual\": %.17g, \"error\": %.17g, \"hash\": \"%016" PRIx64 "\"}\n",
              figures.residual, figures.error, figures.hash);
}

void print_text(const Grid& grid, const Options& options, const Figures& figures) {
  std::printf("%d ranks of %u x %u x %u points, protection %s\n", grid.ranks, grid.nx, grid.ny,
              grid.nz, name_of(options.protection));
  if (figures.restored_version > 0) {
    std::printf("restarted from version %" PRIu64 ", iteration %" PRIu64 "\n",
                figures.restored_version, figures.first_iteration);
  }
  std::printf("matrix %.3f s, %s %.3f s, iterations %.3f s\n", figures.times.matrix_s,
              figures.restored_version > 0 ? "restart" : "start", figures.times.start_s,
              figures.times.loop_s);
  if (figures.blocking.commits > 0) {
    std::printf("%zu commits, waiting %.3f ms each (median), %.3f ms at most\n",
                figures.blocking.commits, 1e3 * figures.blocking.median_s,
                1e3 * figures.blocking.max_s);
  }
  std::printf("%" PRIu64 " iterations, residual %.3e, error %.3e, hash %016" PRIx64 "\n",
              figures.iterations, figures.residual, figures.error, figures.hash);
}

}  // namespace

void print_report(const Grid& grid, const Options& options, const Times& times,
                  std::uint64_t restored_version, std::uint64_t first_iteration, State& state) {
  const double* x = state.source().x;
  const Figures figures{{.matrix_s = job::max_over_ranks(times.matrix_s),
                         .start_s = job::max_over_ranks(times.start_s),
                         .loop_s = job::max_over_ranks(times.loop_s),
                         .iteration_median_s = job::max_over_ranks(times.iteration_median_s),
                         .loop_cpu_s = job::max_over_ranks(times.loop_cpu_s)},
                        blocking_of(state.blocking_s()),
                        (2 * grid.points() + grid.points_with_halo()) * sizeof(double),
                        job::sum_over_ranks(state.committed_bytes()),
                        job::max_over_ranks(state.model_ns()),
                        restored_version,
                        first_iteration,
                        state.scalars().iteration,
                        std::sqrt(state.scalars().rtrans),
                        job::max_over_ranks(error_of(x, grid.points())),
                        job::hash_over_ranks([&](job::Hash& all) {
                          for (std::size_t i = 0; i < grid.points(); ++i) all.add(x[i]);
                        })};
  if (grid.rank != 0) return;
  if (options.json) {
    print_json(grid, options, figures);
  } else {
    print_text(grid, options, figures);
  }
  std::fflush(stdout);
}

}  // namespace hpccg
