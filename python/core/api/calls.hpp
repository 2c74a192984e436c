// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of perdure.h and perdure_mpi.h in a library that this process has loaded.
//
// perdure._api is linked with libperdure. When a communicator is given it finds
// libperdure_mpi_NAME, which has all of libperdure too: the one that is preloaded or linked, else
// the one beside libperdure that serves the MPI library of this process. Each pool keeps to the
// library that opened it.
//
// Threads: any. Failure: Failure is thrown, which becomes perdure.Error.
#pragma once

#include <nanobind/nanobind.h>
#include <perdure/perdure.h>

#include <string>
#include <utility>

namespace perdure::python {

// What a call failed with: a PERDURE_E code and the library's sentence.
struct Failure {
  int code;
  std::string sentence;
};

struct Calls {
  decltype(&perdure_open) open = nullptr;
  decltype(&perdure_close) close = nullptr;
  decltype(&perdure_array_open) array_open = nullptr;
  decltype(&perdure_array_resize) array_resize = nullptr;
  decltype(&perdure_array_shape) array_shape = nullptr;
  decltype(&perdure_array_remove) array_remove = nullptr;
  decltype(&perdure_arrays) arrays = nullptr;
  decltype(&perdure_old_arrays) old_arrays = nullptr;
  decltype(&perdure_stored_shape) stored_shape = nullptr;
  decltype(&perdure_read) read = nullptr;
  decltype(&perdure_scalar_typed) scalar = nullptr;
  decltype(&perdure_file) file = nullptr;
  decltype(&perdure_restart) restart = nullptr;
  decltype(&perdure_versions) versions = nullptr;
  decltype(&perdure_restore) restore = nullptr;
  decltype(&perdure_delete_version) delete_version = nullptr;
  decltype(&perdure_working) working = nullptr;
  decltype(&perdure_consistent) consistent = nullptr;
  decltype(&perdure_mark) mark = nullptr;
  decltype(&perdure_array_box) box = nullptr;
  decltype(&perdure_write) write = nullptr;
  decltype(&perdure_commit) commit = nullptr;
  decltype(&perdure_commit_begin) commit_begin = nullptr;
  decltype(&perdure_before_write) before_write = nullptr;
  decltype(&perdure_commit_wait) commit_wait = nullptr;
  decltype(&perdure_commit_due) commit_due = nullptr;
  decltype(&perdure_stream) stream = nullptr;
  decltype(&perdure_levels_wait) levels_wait = nullptr;
  decltype(&perdure_status) status = nullptr;
  decltype(&perdure_last_error) last_error = nullptr;
  // Of libperdure_mpi_NAME only. MPI_Comm is an int or a pointer.
  void* open_mpi = nullptr;
  int (*win_commit)(const int* win, std::uint64_t* version) = nullptr;
  int (*win_restart)(const int* win, std::uint64_t* version) = nullptr;
  int (*win_halves)(const int* win, int* consistent, int* working) = nullptr;
  int (*win_pool)(const int* win, perdure_pool** pool) = nullptr;
};

// For pools of one process.
const Calls& solo_calls();
// For pools of a communicator of this process's MPI.
const Calls& mpi_calls();
// Of the library that took the MPI calls which made a window.
const Calls& window_calls();

// Runs `call`, without the interpreter's lock, and throws what it failed with.
template <typename Call>
void checked(const Calls& calls, const Call& call) {
  Failure failure{PERDURE_OK, {}};
  {
    const nanobind::gil_scoped_release released;
    failure.code = call();
    if (failure.code != PERDURE_OK) failure.sentence = calls.last_error();
  }
  if (failure.code != PERDURE_OK) throw std::move(failure);
}

}  // namespace perdure::python
