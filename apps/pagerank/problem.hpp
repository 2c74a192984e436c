// The problem that a state belongs to: a state of another one is refused, not gone on with.
#pragma once

#include "collective.hpp"
#include "graph.hpp"
#include "options.hpp"

namespace pagerank {

// Collective. The same on all ranks, other for another graph, partition or damping.
inline std::uint64_t problem_of(const Graph& graph, const Options& options) {
  Hash hash(fingerprint_of(graph));
  hash.add(options.damping);
  return hash.value();
}

}  // namespace pagerank
