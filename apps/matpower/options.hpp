// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the command line.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace matpower {

enum class Arithmetic { saturating, modular };
enum class Access { rows, views, collective };

const char* name_of(Arithmetic arithmetic);
const char* name_of(Access access);

using NodePair = std::pair<std::uint64_t, std::uint64_t>;

// A node is a 32-bit number: an edge of a generated graph is drawn from the pair of them.
constexpr std::uint64_t nodes_max = 0x7fffffff;

struct Options {
  std::uint64_t nodes = 0;  // 0: as many as the edge list names
  std::uint64_t power = 2;
  double density = 0.02;  // probability of each edge of a generated graph
  std::uint64_t seed = 1;
  bool symmetric = false;
  std::string graph;  // edge list; empty: generated
  std::string directory = ".";
  bool delete_on_close = false;
  bool keep = false;
  std::vector<std::pair<std::string, std::string>> hints;
  Access access = Access::rows;
  bool sync_each = true;
  Arithmetic arithmetic = Arithmetic::saturating;
  bool json = false;
  bool check = false;
  bool reread = false;
  std::vector<NodePair> walks;
  bool shortest = false;
  bool triangles = false;
};

// All ranks get the same options or the same job::OptionsEnd; only `speaks` prints what is to be
// said.
Options parse_options(int argc, char** argv, bool speaks);

}  // namespace matpower
