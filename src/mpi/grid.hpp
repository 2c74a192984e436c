// SPDX-License-Identifier: BSD-3-Clause
//
// Part of a multidimensional array: what MPI_Type_create_subarray and _darray choose of one.
// Pure. Threads: values.
#pragma once

#include <cstdint>
#include <vector>

#include "mpi/byte_runs.hpp"
#include "mpi/run_list.hpp"

namespace perdure {

struct IndexRun {
  std::int64_t first;
  std::int64_t count;
};

// One dimension: how long it is, and which of its indices are chosen, increasing.
struct GridAxis {
  std::int64_t length;
  std::vector<IndexRun> chosen;
};

enum class Distribution { none, block, cyclic };

// The indices of one place among `places` in a dimension; block_length 0 is MPI's default.
// MPI 3.1, 4.1.4.
std::vector<IndexRun> distribute(Distribution distribution, std::int64_t length,
                                 std::int64_t block_length, std::int64_t places,
                                 std::int64_t place);

// Adds the chosen items of an array that lies at offset 0; axes from the slowest to the fastest.
void add_grid(RunList& runs, const DatatypeMap& item, const std::vector<GridAxis>& axes);

}  // namespace perdure
