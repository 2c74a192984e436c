// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of MPI on windows that Perdure takes (mpi/mpi_call.hpp).
//
// Calls that make windows, and MPI_Win_fence, which can ask for a commit, always come here; the
// others from the first persistent window on.
#pragma once

#include <mpi.h>

#include "mpi/mpi_call.hpp"
#include "mpi/taken_calls.hpp"

PERDURE_WINDOW_CALLS(PERDURE_DECLARE_TAKEN)
#if MPI_VERSION >= 4
PERDURE_WIDE_WINDOW_CALLS(PERDURE_DECLARE_TAKEN)
#endif

namespace perdure {

// taking.cpp, which knows where the calls go:
// Finds the MPI library's functions on windows and directs them. Idempotent.
void bind_window_calls();
// Directs the calls on windows to Perdure's functions (true), or to the MPI library.
void take_window_calls(bool take);

// WindowCalls::Win_create and so on.
struct WindowCalls {
#define PERDURE_WINDOW_CALL(x, ...) using x = Call<perdure_taken_##x, decltype(MPI_##x)>;
  PERDURE_WINDOW_CALLS(PERDURE_WINDOW_CALL)
#if MPI_VERSION >= 4
  PERDURE_WIDE_WINDOW_CALLS(PERDURE_WINDOW_CALL)
#endif
#undef PERDURE_WINDOW_CALL
};

}  // namespace perdure
