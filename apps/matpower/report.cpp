// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

#include <cinttypes>
#include <cstdio>
#include <string>

#include "job/collective.hpp"
#include "job/facts.hpp"

namespace matpower {
namespace {

using job::Json;

// Over the ranks.
struct Figures {
  double open_s, transfer_s, sync_s, compute_s, close_s;
  std::uint64_t read_bytes, written_bytes, read_calls, write_calls;
};

Figures figures_of(const Outcome& outcome) {
  const Traffic& traffic = outcome.traffic;
  return {.open_s = job::max_over_ranks(traffic.open_s),
          .transfer_s = job::max_over_ranks(traffic.transfer_s),
          .sync_s = job::max_over_ranks(traffic.sync_s),
          .compute_s = job::max_over_ranks(outcome.compute_s),
          .close_s = job::max_over_ranks(traffic.close_s),
          .read_bytes = job::sum_over_ranks(traffic.read_bytes),
          .written_bytes = job::sum_over_ranks(traffic.written_bytes),
          .read_calls = job::sum_over_ranks(traffic.read_calls),
          .write_calls = job::sum_over_ranks(traffic.write_calls)};
}

job::Facts facts_of(const Options& options, const Outcome& outcome) {
  return {"matpower",
          name_of(options.access),
          {{"nodes", outcome.nodes},
           {"edges", outcome.edges},
           {"symmetric", options.symmetric},
           {"power", options.power},
           {"arithmetic", name_of(options.arithmetic)},
           {"ranks", job::rank_count()},
           {"sync", options.sync_each ? "each" : "never"},
           {"delete_on_close", options.delete_on_close}}};
}

Json or_null(const std::optional<std::uint64_t>& value) {
  return value ? Json(*value) : Json(nullptr);
}

void print_answers(const job::Facts& facts, const Outcome& outcome) {
  for (const Walks& walks : outcome.walks) {
    facts.print("walks", walks.count, "1",
                {{"from", walks.nodes.first},
                 {"to", walks.nodes.second},
                 {"shortest", or_null(walks.shortest)}});
  }
  if (outcome.triangles) {
    facts.print("triangles", outcome.triangles->count, "1",
                {{"exact", outcome.triangles->inexact_cells == 0}});
  }
  if (!outcome.distances) return;
  const DistanceSummary& distances = *outcome.distances;
  for (std::size_t i = 0; i < distances.pairs.size(); ++i) {
    facts.print("pairs_at_distance", distances.pairs[i], "1", {{"distance", i + 1}});
  }
  facts.print("pairs_beyond", distances.beyond, "1");
  facts.print("nodes_that_reach_all", distances.reach_all, "1",
              {{"radius", or_null(distances.radius)}, {"diameter", or_null(distances.diameter)}});
}

void print_facts(const Options& options, const Outcome& outcome, const Figures& figures) {
  const job::Facts facts = facts_of(options, outcome);
  facts.print("prepare_s", outcome.prepare_s, "s");
  facts.print("open_s", figures.open_s, "s");
  facts.print("io_s", figures.transfer_s + figures.sync_s, "s", {{"sync_s", figures.sync_s}});
  facts.print("compute_s", figures.compute_s, "s");
  facts.print("close_s", figures.close_s, "s");
  facts.print("read_bytes", figures.read_bytes, "B", {{"calls", figures.read_calls}});
  facts.print("written_bytes", figures.written_bytes, "B", {{"calls", figures.write_calls}});
  print_answers(facts, outcome);
  facts.print("cells_over_255", outcome.over, "1");
  facts.print("total_s", outcome.total_s, "s", {{"hash", job::hex(outcome.hash)}});
}

void print_distances(const DistanceSummary& distances) {
  for (std::size_t i = 0; i < distances.pairs.size(); ++i) {
    std::printf("distance %zu: %" PRIu64 " pairs\n", i + 1, distances.pairs[i]);
  }
  std::printf("beyond or not connected: %" PRIu64 " pairs\n", distances.beyond);
  if (!distances.radius) return;
  std::printf("%" PRIu64 " nodes reach all others, in %" PRIu64 " to %" PRIu64 " steps\n",
              distances.reach_all, *distances.radius, *distances.diameter);
}

void print_text(const Options& options, const Outcome& outcome, const Figures& figures) {
  std::printf("%" PRIu64 " nodes, %" PRIu64 " edges, power %" PRIu64 ", %d ranks, access %s\n",
              outcome.nodes, outcome.edges, options.power, job::rank_count(),
              name_of(options.access));
  std::printf("%.3f s: open %.3f, I/O %.3f, sync %.3f, compute %.3f, close %.3f\n", outcome.total_s,
              figures.open_s, figures.transfer_s, figures.sync_s, figures.compute_s,
              figures.close_s);
  std::printf("read %" PRIu64 " bytes in %" PRIu64 " calls, wrote %" PRIu64 " in %" PRIu64 "\n",
              figures.read_bytes, figures.read_calls, figures.written_bytes, figures.write_calls);
  for (const Walks& walks : outcome.walks) {
    std::printf("walks of %" PRIu64 " steps from %" PRIu64 " to %" PRIu64 ": %" PRIu64 "%s",
                options.power, walks.nodes.first, walks.nodes.second, walks.count,
                options.arithmetic == Arithmetic::modular ? " modulo 256"
                : walks.count == 255                      ? " or more"
                                                          : "");
    if (walks.shortest) std::printf(", the shortest has %" PRIu64, *walks.shortest);
    std::printf("\n");
  }
  if (outcome.triangles && outcome.triangles->inexact_cells == 0) {
    std::printf("%" PRIu64 " triangles\n", outcome.triangles->count);
  } else if (outcome.triangles) {
    std::printf("triangles can't be counted: %" PRIu64 " cells of the second power exceed 255\n",
                outcome.triangles->inexact_cells);
  }
  if (outcome.distances) print_distances(*outcome.distances);
  std::printf("%" PRIu64 " cells of the power exceed 255, hash %s\n", outcome.over,
              job::hex(outcome.hash).c_str());
}

}  // namespace

void print_report(const Options& options, const Outcome& outcome) {
  const Figures figures = figures_of(outcome);
  if (job::this_rank() != 0) return;
  const auto print = options.json ? print_facts : print_text;
  print(options, outcome, figures);
  std::fflush(stdout);
}

}  // namespace matpower
