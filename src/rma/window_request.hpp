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
  Status status;  // what is wrong with the request
  WindowOptions options;
};

// Local, except with PERDURE_WINDOWS: then all ranks of `comm` call it. There a window gets a pool
// of its communicator's own below the one that is named, and a name by order of creation; where no
// pool can hold all ranks it stays plain (plain_window.hpp). A size or unit that can't be is left
// to the MPI library, which refuses it.
WindowRequest read_request(MPI_Info info, MPI_Comm comm, MPI_Aint size, MPI_Aint disp_unit);

}  // namespace perdure
