// SPDX-License-Identifier: BSD-3-Clause
#include "job.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <memory>
#include <string>

#include "adjacency.hpp"
#include "graphs/mixed.hpp"
#include "job/collective.hpp"
#include "job/stopwatch.hpp"
#include "powers.hpp"
#include "product.hpp"

namespace matpower {
namespace {

// The paths of the files of a job. Removes them when it goes, unless they are to be kept.
class Paths {
 public:
  // Collective: throws SharedError where the directory isn't one, or files are in the way.
  explicit Paths(const Options& options) : keep_(options.keep) {
    for (const char* name : {"adjacency", "result", "scratch"}) {
      paths_.push_back(options.directory + "/matpower-" + name + ".bin");
    }
    job::on_every_rank([&] {
      if (job::this_rank() == 0) check_free(options.directory);
    });
    made_ = true;
  }
  ~Paths() {
    if (!made_) return;
    MPI_Barrier(MPI_COMM_WORLD);
    if (job::this_rank() != 0) return;
    if (!keep_) ::unlink(adjacency().c_str());
    if (!keep_) ::unlink(result().c_str());
    ::unlink(scratch().c_str());
  }
  Paths(const Paths&) = delete;
  Paths& operator=(const Paths&) = delete;

  const std::string& adjacency() const { return paths_[0]; }
  const std::string& result() const { return paths_[1]; }
  const std::string& scratch() const { return paths_[2]; }

 private:
  void check_free(const std::string& directory) const {
    if (::access((directory + "/.").c_str(), W_OK | X_OK) != 0) {
      throw job::SharedError(directory + ": " + std::strerror(errno) +
                             "; name a directory that exists and can be written with --directory");
    }
    for (const std::string& path : paths_) {
      if (::access(path.c_str(), F_OK) != 0) continue;
      throw job::SharedError(path + " exists already; remove it, or name another --directory");
    }
  }

  bool keep_, made_ = false;
  std::vector<std::string> paths_;
};

// Refuses what only the graph shows to be wrong.
void check_questions(const Options& options, const Graph& graph) {
  for (const auto& [from, to] : options.walks) {
    const std::uint64_t last = std::max(from, to);
    if (last < graph.nodes()) continue;
    throw job::SharedError("--walks: node " + std::to_string(last) + " is not below " +
                           std::to_string(graph.nodes()) + ", the number of nodes");
  }
  if (options.triangles && graph.loops() > 0) {
    throw job::SharedError(options.graph + " has " + std::to_string(graph.loops()) +
                           " edges from a node to itself, with which the trace counts more than" +
                           " triangles; remove them, or leave out --triangles");
  }
}

// Writes the file of A; returns the number of its edges.
std::uint64_t prepare(const Options& options, const Graph& graph, const Grid& grid,
                      const std::string& path, const Hints& hints) {
  std::vector<Cell> cells;
  job::on_every_rank([&] { cells = graph.cells(grid.own()); });
  Traffic traffic;
  const int mode = MPI_MODE_CREATE | MPI_MODE_WRONLY;
  // ROMIO writes through views by reading around the holes, which takes the right to read.
  const int view_mode = MPI_MODE_CREATE | MPI_MODE_RDWR;
  MatrixFile file(path, options.access == Access::rows ? mode : view_mode, graph.nodes(),
                  options.access, hints, traffic);
  file.write(grid.own(), cells.data());
  file.close();
  traffic.agree();
  const auto edges = std::count_if(cells.begin(), cells.end(), [](Cell cell) { return cell != 0; });
  return job::sum_over_ranks(static_cast<std::uint64_t>(edges));
}

std::uint64_t hash_of(std::uint64_t place, Cell cell) {
  return cell * (graphs::mixed(place) | 1);
}

// The same for any number of ranks: a sum over the cells.
std::uint64_t hash_of(const Grid& grid, const std::vector<Cell>& cells) {
  const Block own = grid.own();
  std::uint64_t hash = 0;
  std::size_t at = 0;
  for (std::uint64_t i = own.rows.begin; i < own.rows.end; ++i) {
    for (std::uint64_t j = own.columns.begin; j < own.columns.end; ++j, ++at) {
      if (cells[at] != 0) hash += hash_of(i * grid.nodes + j, cells[at]);
    }
  }
  return job::sum_over_ranks(hash);
}

// Compares a closed file with the cells that were computed, past MPI-IO and whatever serves it.
void check_file(const std::string& path, std::uint64_t cells, std::uint64_t expected) {
  job::on_every_rank([&] {
    if (job::this_rank() != 0) return;
    std::ifstream file(path, std::ios::binary);
    std::vector<char> piece(1 << 20);
    std::uint64_t hash = 0;
    std::uint64_t place = 0;
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())), file.gcount() > 0) {
      const auto count = static_cast<std::size_t>(file.gcount());
      for (std::size_t i = 0; i < count; ++i, ++place) {
        if (piece[i] != 0) hash += hash_of(place, static_cast<Cell>(piece[i]));
      }
    }
    if (place != cells) {
      throw job::SharedError(path + " has " + std::to_string(place) +
                             " bytes after closing instead of " + std::to_string(cells) +
                             "; what serves MPI-IO lost some");
    }
    if (hash == expected) return;
    throw job::SharedError(path + " does not hold the cells that were written to it" +
                           "; what serves MPI-IO lost or mixed up some");
  });
}

// Compares the file of the last power with a product that was computed on rank 0 alone.
void check_naively(const Options& options, const Graph& graph, const Grid& grid, MatrixFile& last,
                   const Traffic& traffic) {
  const Block whole{{0, graph.nodes()}, {0, graph.nodes()}};
  const Block block = job::this_rank() == 0 ? whole : grid.own();
  std::vector<Cell> cells;
  std::vector<Cell> expected;
  job::on_every_rank([&] {
    cells.resize(block.cells());
    if (job::this_rank() != 0) return;
    expected = naive_power(graph.cells(whole), graph.nodes(), options.power, options.arithmetic);
  });
  last.read(block, cells.data());
  traffic.agree();
  job::on_every_rank([&] {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (cells[i] == expected[i]) continue;
      throw job::SharedError(
          "power " + std::to_string(options.power) + ": cell (" +
          std::to_string(i / graph.nodes()) + ", " + std::to_string(i % graph.nodes()) + ") is " +
          std::to_string(cells[i]) + " instead of " + std::to_string(expected[i]));
    }
  });
}

// All ranks read the cell, as access through views is collective.
std::vector<Walks> count_walks(const Options& options, const Powers& powers, MatrixFile& last) {
  std::vector<Walks> walks;
  for (const NodePair& nodes : options.walks) {
    const auto [from, to] = nodes;
    Cell cell = 0;
    last.read({{from, from + 1}, {to, to + 1}}, &cell);
    walks.push_back({nodes, cell, std::nullopt});
    if (powers.distances()) walks.back().shortest = powers.distances()->between(from, to);
  }
  return walks;
}

void answer(const Options& options, const Grid& grid, const Powers& powers, Outcome& outcome) {
  outcome.compute_s = powers.compute_s();
  outcome.over = job::sum_over_ranks(powers.over());
  outcome.hash = hash_of(grid, powers.cells());
  if (powers.distances()) outcome.distances = powers.distances()->summary(grid);
  if (!options.triangles) return;
  const std::uint64_t walks = job::sum_over_ranks(powers.third_trace());
  outcome.triangles = {walks / (options.symmetric ? 6 : 3),
                       job::sum_over_ranks(powers.second_over())};
}

void make_powers(const Options& options, const Graph& graph, const Grid& grid, const Paths& paths,
                 const Hints& hints, Outcome& outcome) {
  const std::uint64_t products = options.power - 1;
  Progress progress(products * static_cast<std::uint64_t>(grid.side), job::this_rank() == 0);
  const int mode =
      MPI_MODE_CREATE | MPI_MODE_RDWR | (options.delete_on_close ? MPI_MODE_DELETE_ON_CLOSE : 0);
  Traffic& traffic = outcome.traffic;
  const auto open = [&](const std::string& path, int bits) {
    return std::make_unique<MatrixFile>(path, bits, graph.nodes(), options.access, hints, traffic);
  };
  MPI_Barrier(MPI_COMM_WORLD);
  const job::Stopwatch work;
  const auto adjacency = open(paths.adjacency(), MPI_MODE_RDONLY);
  const auto result = products >= 1 ? open(paths.result(), mode) : nullptr;
  const auto scratch = products >= 2 ? open(paths.scratch(), mode) : nullptr;
  Powers powers(grid, options, *adjacency, traffic, progress);
  MatrixFile& last = result ? *result : *adjacency;
  powers.run(last, scratch.get());
  outcome.walks = count_walks(options, powers, last);
  MPI_Barrier(MPI_COMM_WORLD);
  outcome.total_s = work.seconds();

  const Traffic before = traffic;  // a check is no part of what is measured
  if (options.check) check_naively(options, graph, grid, last, traffic);
  traffic = before;

  const job::Stopwatch closing;
  for (MatrixFile* file : {adjacency.get(), scratch.get(), result.get()}) {
    if (file != nullptr) file->close();
  }
  MPI_Barrier(MPI_COMM_WORLD);
  outcome.total_s += closing.seconds();
  traffic.agree();
  answer(options, grid, powers, outcome);
}

}  // namespace

Outcome run_job(const Options& options) {
  std::optional<Graph> graph;
  job::on_every_rank([&] {
    graph.emplace(options);
    check_questions(options, *graph);
  });
  const Grid grid = make_grid(graph->nodes());
  const Hints hints(options);
  const Paths paths(options);
  Outcome outcome;
  outcome.nodes = graph->nodes();
  const job::Stopwatch watch;
  outcome.edges = prepare(options, *graph, grid, paths.adjacency(), hints);
  outcome.prepare_s = watch.seconds();
  make_powers(options, *graph, grid, paths, hints, outcome);
  if (options.reread) {
    const std::string& path = options.power > 1 ? paths.result() : paths.adjacency();
    check_file(path, outcome.nodes * outcome.nodes, outcome.hash);
  }
  return outcome;
}

}  // namespace matpower
