// SPDX-License-Identifier: BSD-3-Clause
#include "adjacency.hpp"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

#include "job/collective.hpp"
#include "mixed.hpp"

namespace matpower {
namespace {

[[noreturn]] void fail_at(const std::string& path, std::uint64_t line, const std::string& what) {
  throw job::SharedError(path + ": line " + std::to_string(line) + ": " + what);
}

// As a message shows it: cut off if it is long.
std::string quoted(const std::string& line) {
  std::string quoted("'");
  quoted.append(line, 0, 40).append("'");
  return quoted;
}

// Lines "SOURCE TARGET", numbered from 0; # and % begin comments. `nodes` is the limit, or 0.
std::vector<NodePair> read_edges(const std::string& path, std::uint64_t nodes) {
  std::ifstream file(path);
  if (!file) throw job::SharedError(path + " can't be read; is --graph the path of an edge list?");
  std::vector<NodePair> edges;
  std::uint64_t number = 0;
  for (std::string line; std::getline(file, line);) {
    ++number;
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first == std::string::npos || line[first] == '#' || line[first] == '%') continue;
    std::istringstream words(line);
    std::int64_t source = -1;
    std::int64_t target = -1;
    std::string more;
    if (!(words >> source >> target) || source < 0 || target < 0 || words >> more) {
      fail_at(path, number, quoted(line) + " is not \"SOURCE TARGET\"");
    }
    const auto last = static_cast<std::uint64_t>(std::max(source, target));
    if (last >= (nodes > 0 ? nodes : 0x7fffffff)) {
      fail_at(path, number,
              "node " + std::to_string(last) + " is not below " +
                  (nodes > 0 ? std::to_string(nodes) + "; see --nodes"
                             : std::string("2^31 - 1, the limit of this program")));
    }
    edges.emplace_back(source, target);
  }
  return edges;
}

std::uint64_t nodes_of(const std::vector<NodePair>& edges) {
  std::uint64_t nodes = 0;
  for (const auto& [source, target] : edges) nodes = std::max({nodes, source + 1, target + 1});
  return nodes;
}

}  // namespace

Graph::Graph(const Options& options)
    : random_(options.graph.empty()),
      symmetric_(options.symmetric),
      nodes_(options.nodes),
      key_(mixed(options.seed + 0x9e3779b97f4a7c15U)),
      threshold_(static_cast<std::uint64_t>(std::ldexp(options.density, 53))) {
  if (random_) return;
  edges_ = read_edges(options.graph, options.nodes);
  if (nodes_ == 0) nodes_ = nodes_of(edges_);
  if (nodes_ == 0) {
    throw job::SharedError(options.graph +
                           " has no edges; say with --nodes how many nodes there are");
  }
  if (!symmetric_) return;
  const std::size_t one_way = edges_.size();
  for (std::size_t i = 0; i < one_way; ++i) {
    edges_.emplace_back(edges_[i].second, edges_[i].first);
  }
}

// An edge is drawn by its pair of nodes alone, so that every block can be drawn by itself.
void Graph::draw(const Block& block, std::vector<Cell>& cells) const {
  std::size_t at = 0;
  for (std::uint64_t i = block.rows.begin; i < block.rows.end; ++i) {
    for (std::uint64_t j = block.columns.begin; j < block.columns.end; ++j, ++at) {
      const std::uint64_t source = symmetric_ ? std::min(i, j) : i;
      const std::uint64_t target = symmetric_ ? std::max(i, j) : j;
      const std::uint64_t drawn = mixed(key_ + (source << 32 | target)) >> 11;
      cells[at] = i != j && drawn < threshold_ ? 1 : 0;
    }
  }
}

std::vector<Cell> Graph::cells(const Block& block) const {
  std::vector<Cell> cells(block.cells());
  if (random_) draw(block, cells);
  for (const auto& [source, target] : edges_) {
    if (source < block.rows.begin || source >= block.rows.end) continue;
    if (target < block.columns.begin || target >= block.columns.end) continue;
    const std::size_t row = source - block.rows.begin;
    cells[row * block.columns.size() + (target - block.columns.begin)] = 1;
  }
  return cells;
}

std::uint64_t Graph::loops() const {
  const auto is_loop = [](const NodePair& edge) { return edge.first == edge.second; };
  return static_cast<std::uint64_t>(std::count_if(edges_.begin(), edges_.end(), is_loop));
}

}  // namespace matpower
