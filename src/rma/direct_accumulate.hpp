// SPDX-License-Identifier: BSD-3-Clause
//
// Direct accumulate: an accumulating call between ranks of a node, whose window is in the pool, by
// this process, which has the target's memory mapped.
//
// Invariants
//   - Accumulates are atomic element by element, and those of one origin keep their order, among
//     those on one predefined datatype; MPI promises no more. So of a window with locks
//     (target_locks.hpp), which all of its ranks have or none, every accumulate is made here that
//     MPI allows on an element known here, and none on any other: which it is depends on nothing
//     but the datatype. What cannot be made here then is an error, or is MPI's to refuse.
//   - A call is done when it returns, under the target's lock, which is given back now and then
//     between two elements. A full fence of this processor follows.
//   - As direct_access.hpp, of when memory may be touched. Where a target has not posted yet the
//     call waits for it, as MPI allows.
//
// Threads: any, as MPI's operations.
#pragma once

#include <mpi.h>

#include "rma/direct_access.hpp"

namespace perdure {

struct Accumulation {
  const void* memory;  // of the origin
  Side origin;
  bool fetches;  // what the target held, to:
  void* result;
  Side at_result;
  int target;
  MPI_Aint at;
  Side at_target;
  MPI_Op op;
};

struct Swap {
  const void* memory;
  const void* compare;
  void* result;
  MPI_Datatype type;
  int target;
  MPI_Aint at;
};

// True if the call was done, or failed in the attempt with `error`.
bool accumulated_directly(Window& window, const Accumulation& call, int& error);
bool accumulated_directly(Window& window, const Swap& call, int& error);

// The same of any persistent window; what every accumulating call is asked first.
template <typename Accumulating>
bool is_accumulated_here(Window& window, const Accumulating& call, int& error) {
  return !mpi_copies_one_run && window.boards.target_locks != nullptr &&
         accumulated_directly(window, call, error);
}

}  // namespace perdure
