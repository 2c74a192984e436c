// SPDX-License-Identifier: BSD-3-Clause
//
// Report: what a run ends with, for people or as one JSON object.
#pragma once

#include <cstdint>

#include "grid.hpp"
#include "options.hpp"
#include "state.hpp"

namespace hpccg {

struct Times {
  double matrix_s = 0;
  double start_s = 0;  // from the matrix to the first iteration: allocation, pool, first residual
  double loop_s = 0;
  double iteration_median_s = 0;  // with its commit
  double loop_cpu_s = 0;          // of all threads of a rank, waiting for messages included
};

// Collective. Times are the slowest rank's, bytes are sums over the ranks.
void print_report(const Grid& grid, const Options& options, const Times& times,
                  std::uint64_t restored_version, std::uint64_t first_iteration, State& state);

}  // namespace hpccg
