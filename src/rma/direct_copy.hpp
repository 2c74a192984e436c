// SPDX-License-Identifier: BSD-3-Clause
//
// Direct copy: a put or get between ranks of a node, whose window is in the pool, by a copy of this
// process, which has the target's memory mapped.
//
// MPICH is slow on the memory of MPI_Win_allocate_shared: from 64 KiB on it sends what is in it in
// messages, at a twentieth of the speed. Open MPI copies by itself what is one run of bytes on both
// sides (mpi_copies_one_run); what is not it packs and unpacks, which takes up to three times as
// long.
//
// A copy is made only while the target's memory may be accessed (direct_access.hpp). It is done
// when the call returns, and a full fence of this processor follows it: whatever MPI does to end
// the epoch comes later.
//
// Everything else is left to the MPI library: the first small transfers of a derived datatype, or
// of a passive-target epoch if MPI has yet to take the lock, targets on other nodes, what would
// not be in the target's memory, sides of different sizes, and all that has no epoch, so that
// errors are MPI's own.
//
// Threads: any, as MPI's operations.
#pragma once

#include <mpi.h>

#include "rma/direct_access.hpp"

namespace perdure {

enum class Towards { target, origin };

struct Operation {
  Towards towards;
  void* memory;  // of the origin
  Side origin;
  int target;
  MPI_Aint at;
  Side at_target;
};

// True if the operation was done, or failed in the attempt with `error`.
bool copied_directly(Window& window, const Operation& operation, int& error);

// Both sides are items of predefined types. Contiguous items of a derived type may lie together as
// well, but Open MPI 4.1.4 does not always put them where they belong.
inline bool is_left_to_mpi(const Operation& operation) {
  return mpi_copies_one_run && is_known_run(operation.at_target.type) &&
         is_known_run(operation.origin.type);
}

// The same of any persistent window; what every put and get is asked first.
inline bool is_made_here(Window& window, const Operation& operation, int& error) {
  return window.exposure.shared && !is_left_to_mpi(operation) &&
         copied_directly(window, operation, error);
}

}  // namespace perdure
