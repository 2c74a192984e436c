// SPDX-License-Identifier: BSD-3-Clause
//
// Job: from the options to what is reported.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "distances.hpp"
#include "matrix_file.hpp"
#include "options.hpp"

namespace matpower {

struct Walks {
  NodePair nodes;
  std::uint64_t count = 0;  // the cell of the power
  std::optional<std::uint64_t> shortest;
};

struct Triangles {
  std::uint64_t count = 0;
  std::uint64_t inexact_cells = 0;  // counts of the second power that a cell could not hold
};

// The same on all ranks, except for `traffic` and `compute_s`, which are those of the rank.
struct Outcome {
  std::uint64_t nodes = 0, edges = 0;
  double prepare_s = 0;  // writing the file of the adjacency matrix; not in total_s
  double total_s = 0;    // from opening the files to having closed them
  double compute_s = 0;
  Traffic traffic;
  std::vector<Walks> walks;
  std::optional<DistanceSummary> distances;
  std::optional<Triangles> triangles;
  std::uint64_t over = 0;  // counts of the last power that a cell could not hold
  std::uint64_t hash = 0;  // of the cells of the last power
};

// Collective. Throws SharedError; the files are gone afterwards unless options.keep.
Outcome run_job(const Options& options);

}  // namespace matpower
