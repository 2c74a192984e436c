// SPDX-License-Identifier: BSD-3-Clause
//
// The names of MPI on windows that this library defines: each a jump to where mpi_calls.hpp
// directs it. Both MPI_X and PMPI_X are taken, as Fortran bindings call either. Whoever makes
// a window lends all memory (mpi/lending.hpp): others may read it, and it is read for them.
#include "mpi/exported_calls.hpp"
#include "mpi/lending.hpp"
#include "rma/mpi_calls.hpp"

extern "C" [[gnu::used, gnu::visibility("hidden")]] void* perdure_first_window_call(
    const std::atomic<void*>* to, const char* name) {
  perdure::bind_window_calls();
  return perdure::destination(*to, name);
}

PERDURE_FIRST_CALLS(perdure_first_window_call)
PERDURE_LEND_JUMP
#define PERDURE_LEND_WINDOW(x, ...) PERDURE_EXPORT_LENDING(x, perdure::bind_window_calls, false)
PERDURE_CREATION_CALLS(PERDURE_LEND_WINDOW)
PERDURE_FENCE_CALL(PERDURE_EXPORT_CALL)
PERDURE_OPEN_WINDOW_CALLS(PERDURE_EXPORT_CALL)
PERDURE_EXPORT_CALL(Win_sync)
#if MPI_VERSION >= 4
PERDURE_WIDE_CREATION_CALLS(PERDURE_LEND_WINDOW)
PERDURE_WIDE_OPEN_WINDOW_CALLS(PERDURE_EXPORT_CALL)
#endif
