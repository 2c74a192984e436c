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

// opening.cpp
decltype(MPI_File_open) file_open;
decltype(MPI_File_close) file_close;
decltype(MPI_File_delete) file_delete;
// Writes back and gives up the cache of a handle, which is the MPI library's alone from then on.
int leave_cache(OpenFile& open);

// file_admin.cpp
decltype(MPI_File_set_size) file_set_size;
decltype(MPI_File_preallocate) file_preallocate;
decltype(MPI_File_get_size) file_get_size;
decltype(MPI_File_set_info) file_set_info;
decltype(MPI_File_get_info) file_get_info;
decltype(MPI_File_set_view) file_set_view;
decltype(MPI_File_seek) file_seek;
decltype(MPI_File_get_position) file_get_position;
decltype(MPI_File_seek_shared) file_seek_shared;
decltype(MPI_File_get_position_shared) file_get_position_shared;
decltype(MPI_File_set_atomicity) file_set_atomicity;
decltype(MPI_File_get_atomicity) file_get_atomicity;
decltype(MPI_File_sync) file_sync;

}  // namespace perdure
