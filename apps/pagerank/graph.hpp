// SPDX-License-Identifier: BSD-3-Clause
//
// Graph: the part of a rank. It owns a contiguous range of nodes and keeps, for each of them, the
// sources of the arcs that end in it, without duplicates and in increasing order.
//
// A source is an index: own nodes are 0 … own - 1, and after them come the ghosts, which are the
// nodes of other ranks with an arc to one of them, in increasing order. Values of nodes lie in
// vectors of `values()` elements in this order. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "partition.hpp"

namespace pagerank {

struct Graph {
  std::uint64_t nodes = 0;      // of all ranks
  std::uint64_t arcs = 0;       // of all ranks, without duplicates
  std::uint64_t arcs_read = 0;  // of all ranks, with them
  Partition partition;
  std::uint64_t first = 0;  // this rank's first node
  std::size_t own = 0;
  std::size_t ghosts = 0;
  std::vector<std::uint64_t> begin;       // of the list of each own node, and the end of the last
  std::vector<std::uint32_t> sources;     // the lists, and after them read_ahead zeros
  std::vector<std::uint32_t> out_degree;  // of own nodes

  // What other ranks need: ghosts_of[r] own nodes, listed in `sent` in the order of the ranks,
  // which belong at element place_at[r] of rank r's values.
  std::vector<int> sent_count;
  std::vector<std::uint32_t> sent;
  std::vector<std::uint64_t> place_at;

  std::size_t values() const { return own + ghosts; }
};

constexpr std::size_t read_ahead = 64;

// Collective. Each rank gives the arcs that it has read. Throws SharedError for a graph without
// nodes or a part that is too large for 32-bit indices.
Graph make_graph(std::uint64_t nodes, std::vector<Arc> arcs);

// Collective. The same on all ranks; tells graphs, and partitions of a graph, from one another.
std::uint64_t fingerprint_of(const Graph& graph);

}  // namespace pagerank
