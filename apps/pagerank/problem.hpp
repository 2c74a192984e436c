// SPDX-License-Identifier: BSD-3-Clause
//
// The problem that a state belongs to: a state of another one is refused, not gone on with.
#pragma once

#include "graph.hpp"
#include "job/collective.hpp"
#include "options.hpp"

namespace pagerank {

// Collective. The same on all ranks, other for another graph, partition or damping.
inline std::uint64_t problem_of(const Graph& graph, const Options& options) {
  job::Hash hash(fingerprint_of(graph));
  hash.add(options.damping);
  return hash.value();
}

}  // namespace pagerank
