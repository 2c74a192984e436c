// SPDX-License-Identifier: BSD-3-Clause
//
// pagerank: PageRank of a directed graph, partitioned over the ranks, with MPI one-sided
// communication; its protection is chosen by a flag. README.md shows how to run it.
#include <mpi.h>

#include "job/run.hpp"
#include "job/stopwatch.hpp"
#include "load.hpp"
#include "options.hpp"
#include "report.hpp"
#include "results.hpp"
#include "solver.hpp"
#include "state.hpp"

namespace pagerank {
namespace {

void rank_nodes(const Options& options) {
  Run run;
  const job::Stopwatch read_watch;
  const Graph graph = load_graph(options);
  run.read_s = read_watch.seconds();

  const job::Stopwatch start_watch;
  const auto state = make_state(graph, options);
  run.restored_version = state->restore();
  Solver solver(graph, options, *state);
  if (run.restored_version == 0) solver.start();
  run.first_iteration = state->scalars().iteration;
  MPI_Barrier(MPI_COMM_WORLD);
  run.start_s = start_watch.seconds();

  const job::Stopwatch loop_watch;
  const double cpu_before_s = job::cpu_seconds();
  solver.run();
  MPI_Barrier(MPI_COMM_WORLD);
  run.loop_s = loop_watch.seconds();
  run.loop_cpu_s = job::cpu_seconds() - cpu_before_s;
  run.iteration_s = solver.iteration_s();

  const std::vector<double> ranks = state->ranks();
  const std::vector<RankedNode> top = top_nodes(graph, ranks, options.top);
  if (!options.ranks_path.empty()) write_ranks(options.ranks_path, graph, ranks);
  print_report(graph, options, run, *state, ranks, top);
}

}  // namespace
}  // namespace pagerank

int main(int argc, char** argv) {
  return job::run(argc, argv, "pagerank", [&](bool speaks) {
    pagerank::rank_nodes(pagerank::parse_options(argc, argv, speaks));
  });
}
