// SPDX-License-Identifier: BSD-3-Clause
//
// Ghosts: brings the values of own nodes into the ghosts of the ranks that need them, one-sided.
//
// Which values these are is known from the graph, so each rank pushes them: one MPI_Put for each
// rank that needs some, of values gathered into one contiguous piece, as its ghosts of one owner
// are contiguous. Pulling them with MPI_Get would be a put for each of the needing rank's nodes, or
// the same gathering on the other side, and a round trip more. A fence on both sides closes the
// epoch: nearly all ranks need values of nearly all others, so finer synchronisation has nothing to
// gain.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <vector>

#include "graph.hpp"

namespace pagerank {

class Ghosts {
 public:
  explicit Ghosts(const Graph& graph) : graph_(graph), gathered_(graph.sent.size()) {}

  // Collective: fence, puts, fence. `window` exposes each rank's values, in elements of a double;
  // `own` are the values of own nodes. No epoch of the window is open before and after.
  void put(MPI_Win window, const double* own);

  std::uint64_t bytes_put() const { return gathered_.size() * sizeof(double); }  // by each put()

 private:
  const Graph& graph_;
  std::vector<double> gathered_;
};

}  // namespace pagerank
