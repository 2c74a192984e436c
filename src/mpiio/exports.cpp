// SPDX-License-Identifier: BSD-3-Clause
//
// The names of MPI on files that this library defines: each a jump to where file_calls.hpp directs
// it. Both MPI_X and PMPI_X are taken, as Fortran bindings call either.
#include "mpi/at_begin.hpp"
#include "mpi/exported_calls.hpp"
#include "mpiio/beginning.hpp"
#include "mpiio/file_calls.hpp"

static const perdure::AtBegin prepare_at_begin(perdure::prepare_files);

extern "C" [[gnu::used, gnu::visibility("hidden")]] void* perdure_first_file_call(
    const std::atomic<void*>* to, const char* name) {
  perdure::bind_file_calls();
  return perdure::destination(*to, name);
}

PERDURE_FIRST_CALLS(perdure_first_file_call)
#define PERDURE_EXPORT_FILE_CALL(x) PERDURE_EXPORT_CALL(File_##x)
PERDURE_FILE_CALLS(PERDURE_EXPORT_FILE_CALL)
#if MPI_VERSION >= 4
#define PERDURE_EXPORT_WIDE_FILE_CALL(x) PERDURE_EXPORT_CALL(File_##x##_c)
PERDURE_CALLS_COUNTED(PERDURE_EXPORT_WIDE_FILE_CALL)
#endif
PERDURE_TEXT_CALLS(PERDURE_EXPORT_UNPROFILED)
