// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <map>

#include "graphs/bvgraph.hpp"
#include "job/choices.hpp"
#include "job/ending.hpp"
#include "job/run.hpp"

namespace pagerank {
namespace {

const std::map<std::string, Protection> protections{{"none", Protection::none},
                                                    {"disk", Protection::disk},
                                                    {"copy", Protection::copy},
                                                    {"twin", Protection::twin},
                                                    {"log", Protection::log}};
const std::map<std::string, Format> formats{
    {"bvgraph", Format::bvgraph}, {"mm", Format::matrix_market}, {"edges", Format::edges}};

void add_graph(CLI::App& app, Options& options) {
  auto* graph = app.add_option("graph", options.graph,
                               "BVGraph (base name), Matrix Market (.mtx) or edge list");
  app.add_option("--format", options.format, "instead of telling it from the name")
      ->transform(CLI::CheckedTransformer(formats, CLI::ignore_case))
      ->needs(graph);
  app.add_option("--nodes", options.nodes, "of an edge list; default: as many as it names")
      ->check(CLI::Range(std::uint64_t{1}, graphs::nodes_max))
      ->needs(graph);
  auto* rmat = app.add_option("--rmat", options.rmat.scale, "generate 2^SCALE nodes instead")
                   ->check(CLI::Range(1U, 31U))
                   ->excludes(graph);
  app.add_option("--edge-factor", options.rmat.edge_factor, "--rmat: arcs drawn for each node")
      ->check(CLI::Range(1, 4096))
      ->needs(rmat);
  app.add_option("--seed", options.rmat.seed, "--rmat: another graph for each")->needs(rmat);
}

void add_iteration(CLI::App& app, Options& options) {
  app.add_option("--damping", options.damping, "share of a rank that follows arcs: c")
      ->check(CLI::Range(0.0, 1.0));
  app.add_option("--iterations", options.iterations, "number of iterations");
  app.add_option("--tolerance", options.tolerance, "end earlier, when the ranks change by less")
      ->check(CLI::NonNegativeNumber);
  app.add_option("--top", options.top, "print the nodes with the K largest ranks");
  app.add_option("--write-ranks", options.ranks_path, "file for the ranks, as 64-bit floats");
  app.add_flag("--json", options.json, "print facts, as lines of JSON, instead of a summary");
}

void add_protection(CLI::App& app, Options& options) {
  job::add_choice(app, "--protect", options.protection, protections, "how the ranks survive");
  app.add_option("--commit-every", options.commit_every, "commit each N iterations")
      ->check(CLI::PositiveNumber);
  app.add_option("--pool", options.pool, "directory of the pool (copy, twin, log)");
  app.add_option("--disk-dir", options.disk_dir, "directory of the files (disk)");
  job::add_emulation(app, options.emulation);
}

Format format_of(const std::string& graph) {
  if (graph.ends_with(".mtx")) return Format::matrix_market;
  const std::string properties = graphs::bvgraph_basename(graph) + ".properties";
  return ::access(properties.c_str(), F_OK) == 0 ? Format::bvgraph : Format::edges;
}

// What depends on the values of several options. No option is taken and then ignored.
void check_together(const CLI::App& app, Options& options) {
  const auto given = [&](const char* name) { return app.count(name) > 0; };
  const auto only_for = [&](const char* name, bool used, const char* what) {
    if (given(name) && !used) {
      throw CLI::ValidationError(name, std::string("is only for ") + what + "; leave it out");
    }
  };
  if (!given("graph") && !given("--rmat")) {
    throw CLI::ValidationError("graph", "is missing; give its path, or --rmat SCALE");
  }
  if (given("--rmat")) {
    options.format = Format::rmat;
    options.graph = "rmat-" + std::to_string(options.rmat.scale) + "-" +
                    std::to_string(options.rmat.edge_factor) + "-" +
                    std::to_string(options.rmat.seed);
  } else if (!given("--format")) {
    options.format = format_of(options.graph);
  }
  only_for("--nodes", options.format == Format::edges, "edge lists");
  only_for("--commit-every", options.protection != Protection::none, "protections");
  only_for("--disk-dir", options.protection == Protection::disk, "--protect disk");
  for (const char* name : {"--pool", "--emulate", "--delay"}) {
    only_for(name, options.has_pool(), "--protect copy, twin and log");
  }
}

}  // namespace

const char* name_of(Protection protection) {
  return job::name_in(protections, protection);
}

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  CLI::App app("PageRank of a directed graph, with ranks that survive");
  add_graph(app, options);
  app.option_defaults()->always_capture_default();
  add_iteration(app, options);
  add_protection(app, options);
  try {
    app.parse(argc, argv);
    check_together(app, options);
  } catch (const CLI::ParseError& error) {
    throw job::OptionsEnd{job::ended_at(app, error, speaks)};
  }
  return options;
}

}  // namespace pagerank
