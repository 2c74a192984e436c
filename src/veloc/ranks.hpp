// SPDX-License-Identifier: BSD-3-Clause
//
// The processes that checkpoint together: those of a communicator, or one by itself.
//
// Threads: one. Failure: what MPI refuses goes to the communicator's error handler.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <string>

#include "perdure/perdure_mpi.hpp"

namespace perdure_veloc {

class Ranks {
 public:
  explicit Ranks(MPI_Comm comm) { MPI_Comm_dup(comm, &comm_); }
  explicit Ranks(unsigned alone_as) : name_("." + std::to_string(alone_as)) {}
  ~Ranks() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int rank() const {
    int rank = 0;
    if (comm_ != MPI_COMM_NULL) MPI_Comm_rank(comm_, &rank);
    return rank;
  }
  // Ends the name of what is this process's alone; empty: all share it.
  const std::string& suffix() const { return name_; }

  // [collective] Whether it holds on any of them.
  bool any(bool here) const {
    int all = here ? 1 : 0;
    if (comm_ != MPI_COMM_NULL) MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MAX, comm_);
    return all != 0;
  }

  // [collective] One process of each node.
  bool first_of_node() const {
    if (comm_ == MPI_COMM_NULL) return true;
    MPI_Comm node = MPI_COMM_NULL;
    int rank = 0;
    MPI_Comm_split_type(comm_, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank);
    MPI_Comm_free(&node);
    return rank == 0;
  }

  // [collective]
  perdure::Pool open(const std::string& path, const perdure::Options& options) const {
    if (comm_ == MPI_COMM_NULL) return perdure::Pool(path, options);
    return perdure::open_mpi(comm_, path, options);
  }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::string name_;
};

}  // namespace perdure_veloc
