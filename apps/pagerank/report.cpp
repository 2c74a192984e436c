// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <algorithm>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>

#include "job/collective.hpp"

namespace pagerank {
namespace {

using Json = nlohmann::ordered_json;

struct Quartiles {
  double low = 0, median = 0, high = 0;
  std::size_t samples = 0;
};

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
  double read_s, start_s, loop_s;
  Quartiles iteration_s, commit_s;
  std::uint64_t arcs_of_busiest, state_bytes, put_bytes, committed_bytes, model_ns;
  std::uint64_t hash;
};

class Facts {
 public:
  Facts(const Graph& graph, const Options& options) : name_(name_of(options.protection)) {
    about_["graph"] = options.graph;
    about_["nodes"] = graph.nodes;
    about_["arcs"] = graph.arcs;
    about_["ranks"] = job::rank_count();
    if (options.protection != Protection::none) about_["commit_every"] = options.commit_every;
    if (!options.emulation.model.empty()) {
      about_["emulated"] = options.emulation.model;
      about_["delay"] = options.emulation.delay;
    }
  }

  void print(const char* metric, const Json& value, const char* unit, const Json& more = {}) const {
    print_line(metric, value, value, value, 1, unit, more);
  }
  void print(const char* metric, const Quartiles& seconds) const {
    if (seconds.samples == 0) return;
    print_line(metric, seconds.median, seconds.low, seconds.high, seconds.samples, "s", {});
  }

 private:
  void print_line(const char* metric, const Json& value, const Json& low, const Json& high,
                  std::size_t samples, const char* unit, const Json& more) const {
    Json line{{"bench", "pagerank"}, {"case", name_},   {"metric", metric}, {"value", value},
              {"unit", unit},        {"low", low},      {"high", high},     {"n", samples},
              {"target", nullptr},   {"holds", nullptr}};
    line.update(about_);
    if (more.is_object()) line.update(more);
    std::printf("%s\n", line.dump(-1, ' ', false, Json::error_handler_t::replace).c_str());
  }

  std::string name_;
  Json about_ = Json::object();
};

void print_facts(const Graph& graph, const Options& options, const Run& run, const Scalars& scalars,
                 const Figures& figures, const std::vector<RankedNode>& top) {
  const Facts facts(graph, options);
  facts.print("arcs_read", graph.arcs_read, "1");
  facts.print("arcs_of_busiest_rank", figures.arcs_of_busiest, "1");
  facts.print("read_s", figures.read_s, "s");
  facts.print(run.restored_version > 0 ? "restart_s" : "start_s", figures.start_s, "s");
  facts.print("loop_s", figures.loop_s, "s");
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
