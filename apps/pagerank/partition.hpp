// SPDX-License-Identifier: BSD-3-Clause
//
// Partition: which rank owns which nodes. Each rank owns a contiguous range, which may be empty;
// the ranges are chosen so that their nodes and the arcs that end in them are about equally many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "graphs/arcs.hpp"

namespace pagerank {

using graphs::Arc;

struct Partition {
  std::vector<std::uint64_t>
      first;  // first[r] is rank r's first node, first[ranks] is one past all

  std::size_t owner_of(std::uint64_t node) const {
    return static_cast<std::size_t>(std::upper_bound(first.begin() + 1, first.end(), node) -
                                    (first.begin() + 1));
  }
};

// Collective. `arcs` are those that this rank has read. Nodes are weighed in at most 2^16 groups of
// neighbours, so that it takes little memory and one reduction.
Partition make_partition(std::uint64_t nodes, const std::vector<Arc>& arcs);

// Collective. Sends each arc to the owner of its target and returns those that came.
std::vector<Arc> send_to_owners(std::vector<Arc> arcs, const Partition& partition);

}  // namespace pagerank
