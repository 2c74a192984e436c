// SPDX-License-Identifier: BSD-3-Clause
//
// What perdure_mpi.h adds for windows, and the same for Fortran's handles.
#include <string>

#include "mpi/mpi_library.hpp"
#include "mpi/served_mpi.hpp"
#include "perdure/perdure_mpi.h"
#include "rma/window_calls.hpp"
#include "rma/window_pool.hpp"

namespace {

using perdure::Code;
using perdure::Status;
using perdure::Window;

Status find(MPI_Win win, Window** window) {
  PERDURE_TRY(perdure::mpi_is_served());
  *window = perdure::find_window(win);
  if (*window != nullptr) {
    return (*window)->pool->handle()->fork.check("the window's pool");
  }
  return {Code::invalid_argument,
          "the window is not persistent; give the MPI_Info of its creation the key perdure_name, "
          "and link libperdure_mpi before the MPI library"};
}

// Fortran's handles, which the standard ABI calls integers.
#ifdef MPI_ABI_VERSION
MPI_Win from_fortran(int win) {
  return PMPI_Win_fromint(win);
}
int to_fortran(MPI_Win win) {
  return PMPI_Win_toint(win);
}
#else
MPI_Win from_fortran(int win) {
  return PMPI_Win_f2c(win);
}
int to_fortran(MPI_Win win) {
  return PMPI_Win_c2f(win);
}
#endif

Status need(bool holds, const char* what) {
  return holds ? Status::success() : Status(Code::invalid_argument, what);
}

}  // namespace

extern "C" {

int perdure_win_commit(MPI_Win win, uint64_t* version) {
  return perdure::guarded([&]() -> Status {
    Window* window = nullptr;
    PERDURE_TRY(find(win, &window));
    PERDURE_TRY_ASSIGN(auto committed, window->pool->commit(true, "perdure_win_commit of window '" +
                                                                      window->options.name + "'"));
    if (version != nullptr) *version = committed;
    return Status::success();
  });
}

int perdure_win_restart(MPI_Win win, uint64_t* version) {
  return perdure::guarded([&]() -> Status {
    Window* window = nullptr;
    PERDURE_TRY(find(win, &window));
    PERDURE_TRY(need(version != nullptr, "a place for the version is needed"));
    *version = window->pool->restored_version();
    return Status::success();
  });
}

int perdure_win_halves(MPI_Win win, MPI_Win* consistent, MPI_Win* working) {
  return perdure::guarded([&]() -> Status {
    Window* window = nullptr;
    PERDURE_TRY(find(win, &window));
    if (window->whole != nullptr) window = window->whole;
    PERDURE_TRY(need(!window->halves.empty(),
                     "only a window of mode twin has two halves; with PERDURE_WINDOWS say "
                     "halves=asked"));
    if (consistent != nullptr) {
      *consistent = window->halves[window->array->consistent_copy()]->handle;
    }
    if (working != nullptr) *working = window->halves[window->array->working_copy()]->handle;
    return Status::success();
  });
}

int perdure_win_pool(MPI_Win win, perdure_pool** pool) {
  return perdure::guarded([&]() -> Status {
    Window* window = nullptr;
    PERDURE_TRY(find(win, &window));
    PERDURE_TRY(need(pool != nullptr, "a place for the pool is needed"));
    *pool = window->pool->handle();
    return Status::success();
  });
}

// For fortran/perdure_mpi.f90. Handles are Fortran's integers.
PERDURE_API int perdure_win_commit_f(const int* win, uint64_t* version) {
  return perdure_win_commit(from_fortran(*win), version);
}

PERDURE_API int perdure_win_restart_f(const int* win, uint64_t* version) {
  return perdure_win_restart(from_fortran(*win), version);
}

PERDURE_API int perdure_win_halves_f(const int* win, int* consistent, int* working) {
  MPI_Win halves[2] = {perdure::win_null(), perdure::win_null()};
  const int code = perdure_win_halves(from_fortran(*win), &halves[0], &halves[1]);
  if (code != PERDURE_OK) return code;
  *consistent = to_fortran(halves[0]);
  *working = to_fortran(halves[1]);
  return PERDURE_OK;
}

PERDURE_API int perdure_win_pool_f(const int* win, perdure_pool** pool) {
  return perdure_win_pool(from_fortran(*win), pool);
}

}  // extern "C"
