// SPDX-License-Identifier: BSD-3-Clause
//
// Calls an action when the program ends MPI: MPI_Finalize frees MPI_COMM_SELF, and with it its
// attributes, while MPI still works. Of several actions the last that was registered comes first.
//
// Threads: any. Failure: if MPI has no key to give, the action is not called.
#pragma once

#include <mpi.h>

#include <mutex>

#include "mpi/mpi_library.hpp"

namespace perdure {

// Only the first call for an action counts.
template <void (*action)()>
void at_finalize() {
  static std::once_flag once;
  std::call_once(once, [] {
    int key = 0;
    const auto copy = [](MPI_Comm, int, void*, void*, void*, int* flag) -> int {
      *flag = 0;
      return MPI_SUCCESS;
    };
    const auto act = [](MPI_Comm, int, void*, void*) -> int {
      action();
      return MPI_SUCCESS;
    };
    if (PMPI_Comm_create_keyval(copy, act, &key, nullptr) == MPI_SUCCESS) {
      PMPI_Comm_set_attr(comm_self(), key, nullptr);
    }
  });
}

}  // namespace perdure
