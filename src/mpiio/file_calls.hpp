// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of MPI on files that Perdure takes (mpi/mpi_call.hpp).
//
// MPI_File_open and MPI_File_delete always come here; the others from the first cached file on.
// Calls that are not listed work on the MPI library's handle, which a cached file keeps: amode,
// group, error handlers, type extents, byte offsets, and conversion to Fortran.
#pragma once

#include <mpi.h>

#include "mpi/mpi_call.hpp"
#include "mpi/taken_calls.hpp"

#define PERDURE_DECLARE_FILE_CALL(x) PERDURE_DECLARE_TAKEN(File_##x)
PERDURE_FILE_CALLS(PERDURE_DECLARE_FILE_CALL)
#undef PERDURE_DECLARE_FILE_CALL
#if MPI_VERSION >= 4
#define PERDURE_DECLARE_FILE_CALL(x) PERDURE_DECLARE_TAKEN(File_##x##_c)
PERDURE_CALLS_COUNTED(PERDURE_DECLARE_FILE_CALL)
#undef PERDURE_DECLARE_FILE_CALL
#endif
PERDURE_TEXT_CALLS(PERDURE_DECLARE_TAKEN)

namespace perdure {

// taking.cpp, which knows where the calls go:
// Finds the MPI library's functions on files and directs them. Idempotent.
void bind_file_calls();
// Directs the calls on open files to here, for good. Idempotent.
void take_file_calls();

// FileCalls::read_at and so on.
struct FileCalls {
#define PERDURE_FILE_CALL(x) using x = Call<perdure_taken_File_##x, decltype(MPI_File_##x)>;
  PERDURE_CALLS_COUNTED(PERDURE_FILE_CALL)
  PERDURE_CALLS_END(PERDURE_FILE_CALL)
  PERDURE_CALLS_OTHER(PERDURE_FILE_CALL)
  using delete_ = Call<perdure_taken_File_delete, decltype(MPI_File_delete)>;
#undef PERDURE_FILE_CALL
#if MPI_VERSION >= 4
#define PERDURE_FILE_CALL(x) \
  using x##_c = Call<perdure_taken_File_##x##_c, decltype(MPI_File_##x##_c)>;
  PERDURE_CALLS_COUNTED(PERDURE_FILE_CALL)
#undef PERDURE_FILE_CALL
#endif
  using error_string = Call<perdure_taken_Error_string, decltype(MPI_Error_string)>;
};

}  // namespace perdure
