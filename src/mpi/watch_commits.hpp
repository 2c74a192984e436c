// SPDX-License-Identifier: BSD-3-Clause
//
// A commit watch (base/commit_watch.hpp) for the ranks of a communicator.
//
// Threads: as MPI's collective calls. Failure: where the ranks of a machine can share no memory
// there is no watch, on all of them.
#pragma once

#include <mpi.h>

#include <memory>
#include <string>

#include "base/commit_watch.hpp"

namespace perdure {

// Collective. Null: there is one rank, no rank has any patience, or there is no memory to share.
// Destroying it is local.
std::unique_ptr<CommitWatch> watch_commits(MPI_Comm comm, const std::string& pool,
                                           const CommitPatience& patience);

}  // namespace perdure
