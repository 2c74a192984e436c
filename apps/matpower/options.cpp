// SPDX-License-Identifier: BSD-3-Clause
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <charconv>
#include <map>

#include "job/choices.hpp"
#include "job/ending.hpp"
#include "job/run.hpp"

namespace matpower {
namespace {

const std::map<std::string, Arithmetic> arithmetics{{"saturating", Arithmetic::saturating},
                                                    {"modular", Arithmetic::modular}};
const std::map<std::string, Access> accesses{
    {"rows", Access::rows}, {"views", Access::views}, {"collective", Access::collective}};
const std::map<std::string, bool> syncs{{"each", true}, {"never", false}};

struct Words {
  std::vector<std::string> walks, hints;
};

void add_graph(CLI::App& app, Options& options) {
  app.add_option("--nodes", options.nodes, "nodes; of an edge list: default as many as it names")
      ->check(CLI::Range(std::uint64_t{1}, nodes_max));
  auto* graph = app.add_option("--graph", options.graph, "edge list instead of a random graph");
  app.add_option("--density", options.density, "probability of each edge")
      ->check(CLI::Range(0.0, 1.0))
      ->excludes(graph)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "another random graph for each")
      ->excludes(graph)
      ->capture_default_str();
  app.add_flag("--symmetric,!--directed", options.symmetric, "an edge joins its nodes both ways");
}

void add_work(CLI::App& app, Options& options, Words& words) {
  app.add_option("--power", options.power, "the power of the adjacency matrix")
      ->check(CLI::Range(1, 1 << 20));
  job::add_choice(app, "--arithmetic", options.arithmetic, arithmetics,
                  "of cells: up to 255, or modulo 256");
  app.add_option("--walks", words.walks, "I,J: number of walks from I to J; may be repeated")
      ->expected(1)
      ->take_all();
  app.add_flag("--shortest", options.shortest, "lengths of shortest paths between all pairs");
  app.add_flag("--triangles", options.triangles, "number of triangles, from the third power");
  app.add_flag("--check", options.check, "compare with a naive product in the memory of rank 0");
}

void add_files(CLI::App& app, Options& options, Words& words) {
  app.add_option("--directory", options.directory, "where the matrices' files are made");
  job::add_choice(app, "--access", options.access, accesses, "how blocks are read and written");
  job::add_choice(app, "--sync", options.sync_each, syncs,
                  "MPI_File_sync after each power, or never");
  app.add_option("--hint", words.hints, "KEY=VALUE for the MPI_Info of the files; repeatable")
      ->expected(1)
      ->take_all();
  app.add_flag("--keep", options.keep, "leave the files of the matrix and of its power");
  auto* temporary = app.add_flag("--delete-on-close", options.delete_on_close,
                                 "open the files of powers with MPI_MODE_DELETE_ON_CLOSE");
  app.add_flag("--reread", options.reread, "read the result's file after closing, and compare")
      ->excludes(temporary);
  app.add_flag("--json", options.json, "print facts, as lines of JSON, instead of a summary");
}

bool number_in(std::string_view word, std::uint64_t& number) {
  const char* end = word.data() + word.size();
  const auto [stopped, error] = std::from_chars(word.data(), end, number);
  return error == std::errc{} && stopped == end && !word.empty();
}

NodePair pair_in(const std::string& word) {
  const std::size_t comma = word.find(',');
  NodePair pair;
  if (comma == std::string::npos ||
      !number_in(std::string_view(word).substr(0, comma), pair.first) ||
      !number_in(std::string_view(word).substr(comma + 1), pair.second)) {
    throw CLI::ValidationError("--walks", "'" + word + "' is not two nodes I,J, such as 3,2");
  }
  return pair;
}

std::pair<std::string, std::string> hint_in(const std::string& word) {
  const std::size_t equals = word.find('=');
  if (equals == 0 || equals == std::string::npos) {
    throw CLI::ValidationError("--hint", "'" + word + "' is not KEY=VALUE");
  }
  return {word.substr(0, equals), word.substr(equals + 1)};
}

// What depends on the values of several options. No option is taken and then ignored.
void check_together(const Words& words, Options& options) {
  const auto refuse = [](const char* name, const char* why) {
    throw CLI::ValidationError(name, why);
  };
  for (const std::string& word : words.walks) options.walks.push_back(pair_in(word));
  for (const std::string& word : words.hints) options.hints.push_back(hint_in(word));
  if (options.nodes == 0 && options.graph.empty()) {
    refuse("--nodes", "is missing; give the number of nodes, or an edge list with --graph FILE");
  }
  if (options.triangles && options.power < 3) {
    refuse("--triangles", "are counted in the third power; give --power 3 or more");
  }
  if (options.shortest && options.arithmetic == Arithmetic::modular) {
    refuse("--shortest", "needs --arithmetic saturating: 256 walks are 0 modulo 256");
  }
}

}  // namespace

const char* name_of(Arithmetic arithmetic) {
  return job::name_in(arithmetics, arithmetic);
}
const char* name_of(Access access) {
  return job::name_in(accesses, access);
}

Options parse_options(int argc, char** argv, bool speaks) {
  Options options;
  Words words;
  CLI::App app("Powers of a graph's adjacency matrix, whose files are read and written by MPI-IO");
  add_graph(app, options);
  app.option_defaults()->always_capture_default();
  add_work(app, options, words);
  add_files(app, options, words);
  try {
    app.parse(argc, argv);
    check_together(words, options);
  } catch (const CLI::ParseError& error) {
    throw job::OptionsEnd{job::ended_at(app, error, speaks)};
  }
  return options;
}

}  // namespace matpower
