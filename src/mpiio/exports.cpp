// SPDX-License-Identifier: BSD-3-Clause
//
// The names of MPI on files that this library defines: each a jump to where file_calls.hpp directs
// it. Both MPI_X and PMPI_X are taken, as Fortran bindings call either. Those that go on after they
// have returned lend the memory that they were given (mpi/lending.hpp).
#include "mpi/at_begin.hpp"
#include "mpi/exported_calls.hpp"
#include "mpi/lending.hpp"
#include "mpiio/beginning.hpp"
#include "mpiio/file_calls.hpp"

static const perdure::AtBegin prepare_at_begin(perdure::prepare_files);

extern "C" [[gnu::used, gnu::visibility("hidden")]] void* perdure_first_file_call(
    const std::atomic<void*>* to, const char* name) {
  perdure::bind_file_calls();
  return perdure::destination(*to, name);
}

PERDURE_FIRST_CALLS(perdure_first_file_call)
PERDURE_LEND_JUMP
#define PERDURE_EXPORT_FILE_CALL(x) PERDURE_EXPORT_CALL(File_##x)
PERDURE_CALLS_AT(PERDURE_EXPORT_FILE_CALL)
PERDURE_CALLS_HERE(PERDURE_EXPORT_FILE_CALL)
PERDURE_CALLS_END(PERDURE_EXPORT_FILE_CALL)
PERDURE_CALLS_OTHER(PERDURE_EXPORT_FILE_CALL)
PERDURE_EXPORT_FILE_CALL(delete)
#define PERDURE_LEND_AT(x) \
  PERDURE_EXPORT_LENDING(File_##x, perdure::bind_file_calls, false, 2, -1, 3, 4)
#define PERDURE_LEND_HERE(x) \
  PERDURE_EXPORT_LENDING(File_##x, perdure::bind_file_calls, false, 1, -1, 2, 3)
PERDURE_CALLS_IAT(PERDURE_LEND_AT)
PERDURE_CALLS_AT_BEGIN(PERDURE_LEND_AT)
PERDURE_CALLS_IHERE(PERDURE_LEND_HERE)
PERDURE_CALLS_HERE_BEGIN(PERDURE_LEND_HERE)
#if MPI_VERSION >= 4
#define PERDURE_EXPORT_WIDE_FILE_CALL(x) PERDURE_EXPORT_CALL(File_##x##_c)
PERDURE_CALLS_AT(PERDURE_EXPORT_WIDE_FILE_CALL)
PERDURE_CALLS_HERE(PERDURE_EXPORT_WIDE_FILE_CALL)
#define PERDURE_LEND_WIDE_AT(x) \
  PERDURE_EXPORT_LENDING(File_##x##_c, perdure::bind_file_calls, true, 2, -1, 3, 4)
#define PERDURE_LEND_WIDE_HERE(x) \
  PERDURE_EXPORT_LENDING(File_##x##_c, perdure::bind_file_calls, true, 1, -1, 2, 3)
PERDURE_CALLS_IAT(PERDURE_LEND_WIDE_AT)
PERDURE_CALLS_AT_BEGIN(PERDURE_LEND_WIDE_AT)
PERDURE_CALLS_IHERE(PERDURE_LEND_WIDE_HERE)
PERDURE_CALLS_HERE_BEGIN(PERDURE_LEND_WIDE_HERE)
#endif
PERDURE_TEXT_CALLS(PERDURE_EXPORT_UNPROFILED)
