// The calls of MPI on files that Perdure takes (mpi/mpi_call.hpp).
//
// MPI_File_open and MPI_File_delete always come here; the others from the first cached file on.
// Calls that are not listed work on the MPI library's handle, which a cached file keeps: amode,
// group, error handlers, type extents, byte offsets, and conversion to Fortran.
#pragma once

#include <mpi.h>

#include "mpi/mpi_call.hpp"

namespace perdure {

// Finds the MPI library's functions on files and directs them. Idempotent.
void bind_file_calls();
// Directs the calls on open files to here (true), or to the MPI library.
void take_file_calls(bool take);

template <CallName name, typename Function>
using FileCall = Call<name, Function, bind_file_calls>;

// Calls Function(X) for the calls of each shape that transfer bytes; X completes MPI_File_X.
//   AT       file, offset, buffer, count, type, status
//   HERE     file, buffer, count, type, status
//   IAT      file, offset, buffer, count, type, request
//   IHERE    file, buffer, count, type, request
//   AT_BEGIN, HERE_BEGIN, END: split collectives
// clang-format off
#define PERDURE_CALLS_AT(F) F(read_at) F(read_at_all) F(write_at) F(write_at_all)
#define PERDURE_CALLS_HERE(F) \
  F(read) F(read_all) F(write) F(write_all) F(read_shared) F(write_shared) F(read_ordered) \
  F(write_ordered)
#define PERDURE_CALLS_IAT(F) F(iread_at) F(iread_at_all) F(iwrite_at) F(iwrite_at_all)
#define PERDURE_CALLS_IHERE(F) \
  F(iread) F(iread_all) F(iwrite) F(iwrite_all) F(iread_shared) F(iwrite_shared)
#define PERDURE_CALLS_AT_BEGIN(F) F(read_at_all_begin) F(write_at_all_begin)
#define PERDURE_CALLS_HERE_BEGIN(F) \
  F(read_all_begin) F(write_all_begin) F(read_ordered_begin) F(write_ordered_begin)
#define PERDURE_CALLS_END(F) \
  F(read_at_all_end) F(write_at_all_end) F(read_all_end) F(write_all_end) \
  F(read_ordered_end) F(write_ordered_end)
// Those that have a count.
#define PERDURE_CALLS_COUNTED(F) \
  PERDURE_CALLS_AT(F) PERDURE_CALLS_HERE(F) PERDURE_CALLS_IAT(F) PERDURE_CALLS_IHERE(F) \
  PERDURE_CALLS_AT_BEGIN(F) PERDURE_CALLS_HERE_BEGIN(F)
// Those that don't transfer bytes, but for MPI_File_delete, whose name is a word of C++.
#define PERDURE_CALLS_OTHER(F) \
  F(open) F(close) F(set_size) F(preallocate) F(get_size) F(set_info) F(get_info) F(set_view) \
  F(seek) F(get_position) F(seek_shared) F(get_position_shared) F(set_atomicity) \
  F(get_atomicity) F(sync)
// clang-format on

// FileCalls::read_at and so on.
struct FileCalls {
#define PERDURE_FILE_CALL(x) using x = FileCall<"PMPI_File_" #x, decltype(MPI_File_##x)>;
  PERDURE_CALLS_COUNTED(PERDURE_FILE_CALL)
  PERDURE_CALLS_END(PERDURE_FILE_CALL)
  PERDURE_CALLS_OTHER(PERDURE_FILE_CALL)
  using delete_ = FileCall<"PMPI_File_delete", decltype(MPI_File_delete)>;
#undef PERDURE_FILE_CALL
#if MPI_VERSION >= 4
#define PERDURE_FILE_CALL(x) \
  using x##_c = FileCall<"PMPI_File_" #x "_c", decltype(MPI_File_##x##_c)>;
  PERDURE_CALLS_COUNTED(PERDURE_FILE_CALL)
#undef PERDURE_FILE_CALL
#endif
};

}  // namespace perdure
