// SPDX-License-Identifier: BSD-3-Clause
//
// Direct copy: a put or get between ranks of a node, whose window is in the pool, by a copy of this
// process, which has the target's memory mapped.
//
// MPICH is slow on the memory of MPI_Win_allocate_shared: from 64 KiB on it sends what is in it in
// messages, at a twentieth of the speed. Open MPI copies by itself (mpi_copies).
//
// Invariants: a copy is made only while the target's memory may be accessed, by MPI's own rules:
//   passive  this rank has an epoch open. MPICH may put off taking its lock until an operation
//            needs it, so one byte is fetched by MPI first, and waited for: once in an epoch, as a
//            lock is kept until it is given back.
//   fence    a fence that waited for all ranks has begun the epoch, and this rank has begun none
//            since; so MPI_MODE_NOPRECEDE, which lets a fence not wait, is not passed on.
//   start    the target is in the group, and has posted (post_board.hpp).
// A copy is done when the call returns, and a full fence of this processor follows it: whatever MPI
// does to end the epoch comes later.
//
// Everything else is left to the MPI library: the first small transfers of a passive-target epoch,
// small ones of derived datatypes, targets on other nodes, what would not be in the target's
// memory, sides of different sizes, and all that has no epoch, so that errors are MPI's own.
//
// Threads: any, as MPI's operations.
#pragma once

#include <mpi.h>

#include "mpi/datatype_map.hpp"
#include "rma/window.hpp"

namespace perdure {

struct Side {
  MPI_Count count;
  MPI_Datatype type;
};

enum class Towards { target, origin };

struct Operation {
  Towards towards;
  void* memory;  // of the origin
  Side origin;
  int target;
  MPI_Aint at;
  Side at_target;
};

#ifdef OPEN_MPI
constexpr bool mpi_copies = true;
#else
constexpr bool mpi_copies = false;
#endif

// In a passive-target epoch fewer bytes are not worth the wait for the lock, unless more follow.
constexpr std::int64_t least_awaited_bytes = 16 << 10;

// True if the operation was done, or failed in the attempt with `error`.
bool copied_directly(Window& window, const Operation& operation, int& error);

// The same of any window, or of none; what every put and get is asked first.
inline bool is_made_here(Window* window, const Operation& operation, int& error) {
  return !mpi_copies && window != nullptr && window->exposure.shared &&
         copied_directly(*window, operation, error);
}

}  // namespace perdure
