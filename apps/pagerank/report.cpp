// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "job/collective.hpp"
#include "job/facts.hpp"

namespace pagerank {
namespace {

using job::Quartiles;

double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (place - std::floor(place)) * (sorted[above] - sorted[below]);
}

// An iteration, or a commit, takes as long as it does on its slowest rank.
Quartiles slowest(const std::vector<double>& local) {
  std::vector<double> slowest(local.size());
  MPI_Allreduce(local.data(), slowest.data(), static_cast<int>(local.size()), MPI_DOUBLE, MPI_MAX,
                MPI_COMM_WORLD);
  if (slowest.empty()) return {};
  std::sort(slowest.begin(), slowest.end());
  return {quantile(slowest, 0.25), quantile(slowest, 0.5), quantile(slowest, 0.75), slowest.size()};
}

struct Figures {
  double read_s, start_s, loop_s, loop_cpu_s;
  Quartiles iteration_s, commit_s;
  std::uint64_t arcs_of_busiest, state_bytes, put_bytes, committed_bytes, model_ns;
  std::uint64_t hash;
};

job::Facts facts_of(const Graph& graph, const Options& options) {
  job::Json about{{"graph", options.graph},
                  {"nodes", graph.nodes},
                  {"arcs", graph.arcs},
                  {"ranks", job::rank_count()}};
  if (options.protection != Protection::none) about["commit_every"] = options.commit_every;
  if (!options.emulation.model.empty()) {
    about["emulated"] = options.emulation.model;
    about["delay"] = options.emulation.delay;
  }
  return {"pagerank", name_of(options.protection), about};
}

void print_facts(const Graph& graph, const Options& options, const Run& run, const Scalars& scalars,
                 const Figures& figures, const std::vector<RankedNode>& top) {
  const job::Facts facts = facts_of(graph, options);
  facts.print("arcs_read", graph.arcs_read, "1");
  facts.print("arcs_of_busiest_rank", figures.arcs_of_busiest, "1");
  facts.print("read_s", figures.read_s, "s");
  facts.print(run.restored_version > 0 ? "restart_s" : "start_s", figures.start_s, "s");
  facts.print("loop_s", figures.loop_s, "s");
  facts.print("loop_cpu_s", figures.loop_cpu_s, "s");
  facts.print("iteration_s", figures.iteration_s);
  facts.print("commit_s", figures.commit_s);
  facts.print("state_bytes", figures.state_bytes, "B");
  facts.print("put_bytes", figures.put_bytes, "B");
  facts.print("committed_bytes", figures.committed_bytes, "B");
  if (options.has_pool()) facts.print("model_ns", figures.model_ns, "ns");
  facts.print("change", scalars.change, "1");
  facts.print("total_rank", scalars.total, "1");
  for (std::size_t i = 0; i < top.size(); ++i) {
    facts.print("rank", top[i].rank, "1", {{"place", i + 1}, {"node", top[i].node}});
  }
  facts.print("iterations", scalars.iteration, "1",
              {{"first_iteration", run.first_iteration},
               {"restored_version", run.restored_version},
               {"hash", job::hex(figures.hash)}});
}

void print_text(const Graph& graph, const Options& options, const Run& run, const Scalars& scalars,
                const Figures& figures, const std::vector<RankedNode>& top) {
  std::printf("%s: %" PRIu64 " nodes, %" PRIu64 " arcs, %d ranks, protection %s\n",
              options.graph.c_str(), graph.nodes, graph.arcs, job::rank_count(),
              name_of(options.protection));
  if (run.restored_version > 0) {
    std::printf("restarted from version %" PRIu64 ", iteration %" PRIu64 "\n", run.restored_version,
                run.first_iteration);
  }
  std::printf("graph %.3f s, %s %.3f s, iterations %.3f s (median %.3f ms)\n", figures.read_s,
              run.restored_version > 0 ? "restart" : "start", figures.start_s, figures.loop_s,
              1e3 * figures.iteration_s.median);
  if (figures.commit_s.samples > 0) {
    std::printf("%zu commits, waiting %.3f ms each (median)\n", figures.commit_s.samples,
                1e3 * figures.commit_s.median);
  }
  for (const RankedNode& node : top) std::printf("%12" PRIu64 "  %.9e\n", node.node, node.rank);
  std::printf("%" PRIu64 " iterations, change %.3e, total %.15f, hash %s\n", scalars.iteration,
              scalars.change, scalars.total, job::hex(figures.hash).c_str());
}

}  // namespace

void print_report(const Graph& graph, const Options& options, const Run& run, const State& state,
                  const std::vector<double>& ranks, const std::vector<RankedNode>& top) {
  const auto add_ranks = [&](job::Hash& hash) {
    for (const double rank : ranks) hash.add(rank);
  };
  const Figures figures{.read_s = job::max_over_ranks(run.read_s),
                        .start_s = job::max_over_ranks(run.start_s),
                        .loop_s = job::max_over_ranks(run.loop_s),
                        .loop_cpu_s = job::max_over_ranks(run.loop_cpu_s),
                        .iteration_s = slowest(run.iteration_s),
                        .commit_s = slowest(state.commit_s()),
                        .arcs_of_busiest = job::max_over_ranks(graph.begin[graph.own]),
                        .state_bytes = job::sum_over_ranks(state.bytes()),
                        .put_bytes = job::sum_over_ranks(state.put_bytes()),
                        .committed_bytes = job::sum_over_ranks(state.committed_bytes()),
                        .model_ns = job::max_over_ranks(state.model_ns()),
                        .hash = job::hash_over_ranks(add_ranks)};
  if (job::this_rank() != 0) return;
  const auto print = options.json ? print_facts : print_text;
  print(graph, options, run, state.scalars(), figures, top);
  std::fflush(stdout);
}

}  // namespace pagerank
