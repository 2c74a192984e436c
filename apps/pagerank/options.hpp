// SPDX-License-Identifier: BSD-3-Clause
//
// Options of the command line.
#pragma once

#include <cstdint>
#include <string>

#include "graphs/rmat.hpp"
#include "job/emulation.hpp"

namespace pagerank {

enum class Protection { none, disk, copy, twin, log };
enum class Format { bvgraph, matrix_market, edges, rmat };

const char* name_of(Protection protection);

struct Options {
  std::string graph;  // path; for messages and facts also "rmat-SCALE-…"
  Format format = Format::edges;
  std::uint64_t nodes = 0;  // of an edge list; 0: as many as it names
  graphs::Rmat rmat;
  double damping = 0.85;
  std::uint64_t iterations = 100;
  double tolerance = 0;  // of the L1 norm of the change; 0: always all iterations
  Protection protection = Protection::none;
  std::uint64_t commit_every = 1;
  std::string pool = "pagerank.pool";
  std::string disk_dir = "pagerank.disk";
  job::Emulation emulation;
  std::uint64_t top = 0;
  std::string ranks_path;  // empty: not written
  bool json = false;

  // Whether the state lies in persistent windows.
  bool has_pool() const { return protection != Protection::none && protection != Protection::disk; }
};

// All ranks get the same options or the same job::OptionsEnd; only `speaks` prints what is to be
// said.
Options parse_options(int argc, char** argv, bool speaks);

}  // namespace pagerank
