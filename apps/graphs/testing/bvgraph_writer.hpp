// SPDX-License-Identifier: BSD-3-Clause
//
// Writes BVGraphs for tests: every way to store a list, chosen at random, so that a reader meets
// all of them. It does not look for the smallest form.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "../bvgraph.hpp"

namespace graphs {

using Lists = std::vector<std::vector<std::uint32_t>>;  // the successors of each node, increasing

class BitWriter {
 public:
  void bits(std::uint64_t value, unsigned count);
  void write(std::uint64_t value, Code code, unsigned zeta_k);
  std::uint64_t position() const { return written_; }
  const std::string& bytes() const { return bytes_; }

 private:
  void unary(std::uint64_t value);
  void gamma(std::uint64_t value);
  void delta(std::uint64_t value);
  void zeta(std::uint64_t value, unsigned k);
  void nibble(std::uint64_t value);

  std::string bytes_;
  std::uint64_t written_ = 0;
};

// What was used, so that a test can see that all of it was.
struct BvUse {
  std::uint64_t references = 0, blocks = 0, whole_copies = 0, intervals = 0, residuals = 0;
};

// Writes base.graph, .offsets and .properties; sets the numbers of nodes and arcs.
BvUse write_bvgraph(const std::string& base, const Lists& lists, BvProperties properties,
                    std::mt19937_64& random);

}  // namespace graphs
