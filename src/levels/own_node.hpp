// SPDX-License-Identifier: BSD-3-Clause
//
// Own node: where this rank's files of the pool are, and who shares that node with it.
//
// Threads: a value. Failure: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/group.hpp"

namespace perdure {

// Between looks at what other ranks of the node, or a thread, have come to.
inline constexpr auto poll_time = std::chrono::microseconds(50);

struct OwnNode {
  Group& group;
  std::string directory;  // of the pool
  Trust trust = Trust::own;
  std::vector<std::uint32_t> nodes;  // of each rank

  bool has(std::uint32_t rank) const {
    return rank < nodes.size() && nodes[rank] == nodes[group.rank()];
  }
  std::vector<std::uint32_t> ranks() const {
    std::vector<std::uint32_t> here;
    for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
      if (has(rank)) here.push_back(rank);
    }
    return here;
  }
  // What is done once for a node is done by its lowest rank.
  bool is_led_here() const { return ranks().front() == group.rank(); }
  bool is_alone() const {
    return std::ranges::all_of(nodes, [this](auto node) { return node == nodes[0]; });
  }

  // On stderr: once for all ranks, and of this one alone.
  void say(const std::string& sentence) const {
    if (group.rank() != 0) return;
    std::fprintf(stderr, "perdure: %s: %s\n", directory.c_str(), sentence.c_str());
  }
  void say_here(const std::string& sentence) const {
    std::fprintf(stderr, "perdure: %s: rank %u: %s\n", directory.c_str(), group.rank(),
                 sentence.c_str());
  }
};

}  // namespace perdure
