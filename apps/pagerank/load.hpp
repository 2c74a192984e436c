// SPDX-License-Identifier: BSD-3-Clause
//
// Loads the graph that the options name: every rank reads or generates its part.
#pragma once

#include "graph.hpp"
#include "options.hpp"

namespace pagerank {

// Collective. Throws SharedError where the input is not right on any rank.
Graph load_graph(const Options& options);

}  // namespace pagerank
