// SPDX-License-Identifier: BSD-3-Clause
//
// Perdure's side of the MPI calls on files that don't transfer bytes, by MPI's names and with MPI's
// arguments. Each looks its file up and, if it is not cached, calls the MPI library.
//
// Errors of Perdure are raised through the error handler of the file, or of MPI_FILE_NULL while
// there is none.
#pragma once

#include <mpi.h>

#include "mpi/caller_scope.hpp"
#include "mpiio/file_calls.hpp"
#include "mpiio/open_file.hpp"

namespace perdure {

// opening.cpp and file_admin.cpp
#define PERDURE_DECLARE_OURS(x) decltype(MPI_File_##x) file_##x;
PERDURE_CALLS_OTHER(PERDURE_DECLARE_OURS)
#undef PERDURE_DECLARE_OURS
decltype(MPI_File_delete) file_delete;
// Writes back and gives up the cache of a handle, which is the MPI library's alone from then on.
int leave_cache(OpenFile& open);

}  // namespace perdure
