// SPDX-License-Identifier: BSD-3-Clause
//
// BVGraph: graphs in the compressed format of the WebGraph framework, in which the Laboratory for
// Web Algorithmics publishes its crawls: BASENAME.properties, .graph and .offsets. Written from the
// documentation of the format and from Boldi and Vigna, "The WebGraph Framework I: Compression
// Techniques" (WWW 2004).
//
// The successors of a node are stored as blocks copied from the list of a node before it (at most
// `window` nodes before), intervals of consecutive nodes, and residuals. The offsets
// say where each list begins, so a rank reads its own bits and those of the few nodes that its
// first lists refer to.
#pragma once

#include <cstdint>
#include <string>

#include "arcs.hpp"
#include "bit_reader.hpp"

namespace graphs {

struct BvProperties {
  std::uint64_t nodes = 0;
  std::uint64_t arcs = 0;
  std::uint64_t window = 7;
  std::uint64_t max_references = UINT64_MAX;  // length of a chain of references; that: unlimited
  std::uint64_t min_interval = 4;             // 0: no intervals
  unsigned zeta_k = 3;
  Code outdegrees = Code::gamma;
  Code references = Code::unary;
  Code block_counts = Code::gamma;
  Code blocks = Code::gamma;
  Code residuals = Code::zeta;
  Code offsets = Code::gamma;
};

// Throws InputError, also for a graph whose codes this reader does not know.
BvProperties read_bv_properties(const std::string& path);

// The arcs of a part of the nodes, of about as many bits as the other parts; each list is strictly
// increasing. `basename` may have the ending of one of the files. Throws InputError.
ArcPart read_bvgraph(const std::string& basename, Part part);

// `name` without .graph, .properties or .offsets.
std::string bvgraph_basename(const std::string& name);

}  // namespace graphs
