// SPDX-License-Identifier: BSD-3-Clause
//
// Graphs in text files: edge lists and Matrix Market. Each part reads its own lines. Throws
// InputError.
#pragma once

#include <cstdint>
#include <string>

#include "arcs.hpp"

namespace graphs {

// Lines "SOURCE TARGET", separated by blanks, numbered from 0; lines that begin with # or % are
// comments. `nodes` is the number of nodes, 0: one more than the largest number in the file, which
// is below `limit`.
ArcPart read_edge_list(const std::string& path, std::uint64_t nodes, Part part,
                       std::uint64_t limit = nodes_max);

// A square matrix, "coordinate" of "pattern", "real" or "integer", "general" or "symmetric": an
// entry in row i and column j is an arc from node i - 1 to node j - 1, whatever its value.
ArcPart read_matrix_market(const std::string& path, Part part);

}  // namespace graphs
