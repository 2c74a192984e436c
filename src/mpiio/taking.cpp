// SPDX-License-Identifier: BSD-3-Clause
//
// Where the calls on files lead: to Perdure's functions, or to the MPI library.
#include <mutex>

#include "base/fork_guard.hpp"
#include "mpi/forked_child.hpp"
#include "mpi/narrow_call.hpp"
#include "mpi/served_mpi.hpp"
#include "mpiio/data_access.hpp"
#include "mpiio/file_admin.hpp"
#include "mpiio/file_calls.hpp"
#include "mpiio/open_file.hpp"
#include "mpiio/recorder.hpp"

#define PERDURE_DEFINE_FILE_CALL(x) PERDURE_DEFINE_TAKEN(File_##x)
PERDURE_FILE_CALLS(PERDURE_DEFINE_FILE_CALL)
#undef PERDURE_DEFINE_FILE_CALL
#if MPI_VERSION >= 4
#define PERDURE_DEFINE_FILE_CALL(x) PERDURE_DEFINE_TAKEN(File_##x##_c)
PERDURE_CALLS_COUNTED(PERDURE_DEFINE_FILE_CALL)
#undef PERDURE_DEFINE_FILE_CALL
#endif
PERDURE_TEXT_CALLS(PERDURE_DEFINE_TAKEN)

namespace perdure {
namespace {

#if MPI_VERSION >= 4
void narrow_absent() {
#define PERDURE_NARROW_3(x) PERDURE_NARROW_IF_ABSENT(File_##x##_c, File_##x, counts({3}))
#define PERDURE_NARROW_2(x) PERDURE_NARROW_IF_ABSENT(File_##x##_c, File_##x, counts({2}))
  PERDURE_CALLS_COUNT_3(PERDURE_NARROW_3)
  PERDURE_CALLS_COUNT_2(PERDURE_NARROW_2)
#undef PERDURE_NARROW_3
#undef PERDURE_NARROW_2
}
#endif

void bind_all() {
#define PERDURE_BIND(x) FileCalls::x::bind();
  PERDURE_CALLS_COUNTED(PERDURE_BIND)
  PERDURE_CALLS_END(PERDURE_BIND)
  PERDURE_CALLS_OTHER(PERDURE_BIND)
#undef PERDURE_BIND
  FileCalls::delete_::bind();
  FileCalls::error_string::bind();
#if MPI_VERSION >= 4
#define PERDURE_BIND(x) FileCalls::x##_c::bind();
  PERDURE_CALLS_COUNTED(PERDURE_BIND)
  narrow_absent();
#undef PERDURE_BIND
#endif
}

void pass_all_on() {
#define PERDURE_PASS_ON(x) pass_on(perdure_taken_File_##x);
  PERDURE_FILE_CALLS(PERDURE_PASS_ON)
#undef PERDURE_PASS_ON
#if MPI_VERSION >= 4
#define PERDURE_PASS_ON(x) pass_on(perdure_taken_File_##x##_c);
  PERDURE_CALLS_COUNTED(PERDURE_PASS_ON)
  narrow_absent();
#undef PERDURE_PASS_ON
#endif
  pass_on(perdure_taken_Error_string);
}

void refuse_all_in_child() {
#define PERDURE_REFUSE(x) refuse_in_child(perdure_taken_File_##x);
  PERDURE_FILE_CALLS(PERDURE_REFUSE)
#undef PERDURE_REFUSE
#if MPI_VERSION >= 4
#define PERDURE_REFUSE(x) refuse_in_child(perdure_taken_File_##x##_c);
  PERDURE_CALLS_COUNTED(PERDURE_REFUSE)
#undef PERDURE_REFUSE
#endif
}

}  // namespace

void bind_file_calls() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (!mpi_is_served().ok()) return pass_all_on();
    bind_all();
    direct<FileCalls::open>(true, from_caller<file_open>);
    direct<FileCalls::delete_>(true, from_caller<file_delete>);
    direct<FileCalls::error_string>(true, file_error_string);
    record_file_calls();
  });
}

// Not taken back with the last cached file: to direct a hundred calls costs more than a program
// saves that opens its files after each other.
void take_file_calls() {
  static std::once_flag once;
  std::call_once(once, [] {
    in_forked_children(refuse_all_in_child);
    take_data_access();
#define PERDURE_TAKE(x) direct<FileCalls::x>(true, file_##x);
    PERDURE_CALLS_OPEN_FILE(PERDURE_TAKE)
#undef PERDURE_TAKE
  });
}

}  // namespace perdure
