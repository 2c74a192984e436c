// SPDX-License-Identifier: BSD-3-Clause
//
// Results: the ranks, for people and for other programs.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph.hpp"

namespace pagerank {

struct RankedNode {
  double rank;
  std::uint64_t node;
};

// Collective. The `count` nodes with the largest ranks, largest first, and of equal ranks the
// smaller node first; on rank 0, empty on others. `ranks` are those of own nodes.
std::vector<RankedNode> top_nodes(const Graph& graph, const std::vector<double>& ranks,
                                  std::uint64_t count);

// Collective. Writes all ranks in the order of the nodes, as 64-bit floats of this machine. Throws
// SharedError.
void write_ranks(const std::string& path, const Graph& graph, const std::vector<double>& ranks);

}  // namespace pagerank
