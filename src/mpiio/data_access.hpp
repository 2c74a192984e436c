// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure's side of the MPI calls that transfer bytes. Each looks its file up and, if it is not
// cached, or if the arguments are such as MPI refuses, calls the MPI library.
//
// Collective accesses need no exchange: every byte has its place, whoever asks. Nonblocking ones
// are done when the call returns, and give a generalised request that is complete.
//
// Threads: as MPI says of each call.
#pragma once

#include "mpiio/file_calls.hpp"

namespace perdure {

// Directs all of them to here.
void take_data_access();

}  // namespace perdure
