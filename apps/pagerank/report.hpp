// SPDX-License-Identifier: BSD-3-Clause
//
// Report: what a run ends with, for people or as facts: lines of JSON with the keys of every
// benchmark here (bench, case, metric, value, unit, low, high, n, target, holds) and what the run
// was.
#pragma once

#include <cstdint>
#include <vector>

#include "graph.hpp"
#include "options.hpp"
#include "results.hpp"
#include "state.hpp"

namespace pagerank {

struct Run {
  double read_s = 0;  // until each rank has its part of the graph
  double start_s =
      0;  // from there to the first iteration: windows, pool, restored or first iterate
  double loop_s = 0;
  double loop_cpu_s = 0;  // of the processor, by all threads
  std::uint64_t restored_version = 0;
  std::uint64_t first_iteration = 0;
  std::vector<double> iteration_s;
};

// Collective. Times are the slowest rank's, bytes are sums over the ranks. `ranks` are those of own
// nodes; `top` is what rank 0 prints of them.
void print_report(const Graph& graph, const Options& options, const Run& run, const State& state,
                  const std::vector<double>& ranks, const std::vector<RankedNode>& top);

}  // namespace pagerank
