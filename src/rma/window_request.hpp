// SPDX-License-Identifier: BSD-3-Clause
//
// WindowRequest: whether a window that is being made is to be persistent, and how: by its MPI_Info,
// or by the environment.
#pragma once

#include <mpi.h>

#include "base/status.hpp"
#include "rma/window_options.hpp"

namespace perdure {

struct WindowRequest {
  bool persistent = false;
  Status able;    // not: no pool can hold the ranks, so that the window stays plain on all of them
  Status status;  // what is wrong with the request
  WindowOptions options;
};

// Local. With PERDURE_WINDOWS a window gets a pool of its communicator's own below the one that is
// named. A size or unit that can't be is left to the MPI library, which refuses it.
WindowRequest read_request(MPI_Info info, MPI_Comm comm, MPI_Aint size, MPI_Aint disp_unit);

// Local, once all ranks are to make it: with PERDURE_WINDOWS it gets a name by order of creation.
void name_window(WindowRequest& request);

}  // namespace perdure
