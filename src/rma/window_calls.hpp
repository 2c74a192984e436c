// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure's side of the MPI calls that it takes, by MPI's names and with MPI's arguments. Each
// looks its window up and, if it is not persistent, calls the MPI library.
//
// Errors of Perdure are raised through the error handler of the window, or of the communicator
// while there is no window, with an error code whose text is the sentence of the Status.
//
// Threads: as MPI says of each call.
#pragma once

#include <mpi.h>

#include "base/status.hpp"
#include "mpi/caller_scope.hpp"
#include "rma/mpi_calls.hpp"
#include "rma/window.hpp"

namespace perdure {

// errors.cpp: call the handler, return the code.
int raise_on_comm(MPI_Comm comm, const Status& status);
int raise_on_window(MPI_Win window, const Status& status);

#define PERDURE_DECLARE_OURS(x, ours, ...) decltype(MPI_##x) ours;
PERDURE_TAKEN_WINDOW_CALLS(PERDURE_DECLARE_OURS)
#if MPI_VERSION >= 4
PERDURE_WIDE_WINDOW_CALLS(PERDURE_DECLARE_OURS)
#endif
#undef PERDURE_DECLARE_OURS

}  // namespace perdure
