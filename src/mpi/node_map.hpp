// SPDX-License-Identifier: BSD-3-Clause
//
// Node map: which ranks of a communicator share a node, so that they can map the same memory.
//
// The environment variable PERDURE_NODE_ID, a number, divides a node further: ranks with different
// numbers take each other for processes of different nodes. It is for trials on one machine.
//
// Threads: as MPI's collective calls. Failure: on all ranks or on none.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.hpp"

namespace perdure {

struct NodeMap {
  std::uint32_t node = 0;  // of this rank; nodes are numbered by their lowest rank
  std::uint32_t nodes = 1;
  std::uint32_t local_rank = 0;  // of this rank on its node
  std::uint32_t local_ranks = 1;
  std::vector<std::uint32_t> leaders;  // the lowest rank of each node
  std::string pretended;               // PERDURE_NODE_ID; empty: a real node
  bool one_machine = false;            // all ranks share memory, pretended nodes or not

  bool leads() const { return local_rank == 0; }
};

// Collective.
Result<NodeMap> map_nodes(MPI_Comm comm);

// Collective. `bytes` bytes of each rank, in order of ranks.
Status gather_all(MPI_Comm comm, const void* own, std::size_t bytes, std::vector<char>& all);

}  // namespace perdure
