// SPDX-License-Identifier: BSD-3-Clause
//
// Graph: which cells of the adjacency matrix are 1. Drawn at random or read from an edge list, it
// is the same for every number of ranks, and any block of it can be made on any rank.
#pragma once

#include <cstdint>
#include <vector>

#include "graphs/arcs.hpp"
#include "grid.hpp"
#include "options.hpp"

namespace matpower {

using Cell = std::uint8_t;

class Graph {
 public:
  // Reads the edge list, if there is one. Throws graphs::InputError.
  explicit Graph(const Options& options);

  std::uint64_t nodes() const { return nodes_; }

  // The cells of a block, row by row.
  std::vector<Cell> cells(const Block& block) const;

  // Edges from a node to itself; 0 for random graphs.
  std::uint64_t loops() const;

 private:
  void draw(const Block& block, std::vector<Cell>& cells) const;

  bool random_, symmetric_;
  std::uint64_t nodes_, key_, threshold_;
  std::vector<graphs::Arc> edges_;  // in both directions if symmetric
};

}  // namespace matpower
