// SPDX-License-Identifier: BSD-3-Clause
//
// The names of MPI on windows that this library defines: each a jump to where mpi_calls.hpp
// directs it. Both MPI_X and PMPI_X are taken, as Fortran bindings call either.
#include "mpi/exported_calls.hpp"
#include "rma/mpi_calls.hpp"

extern "C" [[gnu::used, gnu::visibility("hidden")]] void* perdure_first_window_call(
    const std::atomic<void*>* to, const char* name) {
  perdure::bind_window_calls();
  return perdure::destination(*to, name);
}

PERDURE_FIRST_CALLS(perdure_first_window_call)
PERDURE_WINDOW_CALLS(PERDURE_EXPORT_CALL)
#if MPI_VERSION >= 4
PERDURE_WIDE_WINDOW_CALLS(PERDURE_EXPORT_CALL)
#endif
