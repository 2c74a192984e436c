// SPDX-License-Identifier: BSD-3-Clause
#include "adjacency.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "graphs/mixed.hpp"
#include "graphs/text_graphs.hpp"

namespace matpower {

Graph::Graph(const Options& options)
    : random_(options.graph.empty()),
      symmetric_(options.symmetric),
      nodes_(options.nodes),
      key_(graphs::mixed(options.seed + 0x9e3779b97f4a7c15U)),
      threshold_(static_cast<std::uint64_t>(std::ldexp(options.density, 53))) {
  if (random_) return;
  graphs::ArcPart read = graphs::read_edge_list(options.graph, options.nodes, {}, nodes_max);
  edges_ = std::move(read.arcs);
  nodes_ = read.nodes;
  if (nodes_ == 0) {
    throw graphs::InputError(options.graph +
                             " has no edges; say with --nodes how many nodes there are");
  }
  if (!symmetric_) return;
  const std::size_t one_way = edges_.size();
  for (std::size_t i = 0; i < one_way; ++i) {
    edges_.push_back({edges_[i].target, edges_[i].source});
  }
}

// An edge is drawn by its pair of nodes alone, so that every block can be drawn by itself.
void Graph::draw(const Block& block, std::vector<Cell>& cells) const {
  std::size_t at = 0;
  for (std::uint64_t i = block.rows.begin; i < block.rows.end; ++i) {
    for (std::uint64_t j = block.columns.begin; j < block.columns.end; ++j, ++at) {
      const std::uint64_t source = symmetric_ ? std::min(i, j) : i;
      const std::uint64_t target = symmetric_ ? std::max(i, j) : j;
      const std::uint64_t drawn = graphs::mixed(key_ + (source << 32 | target)) >> 11;
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
  const auto is_loop = [](const graphs::Arc& edge) { return edge.source == edge.target; };
  return static_cast<std::uint64_t>(std::count_if(edges_.begin(), edges_.end(), is_loop));
}

}  // namespace matpower
