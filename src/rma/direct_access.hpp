// SPDX-License-Identifier: BSD-3-Clause
//
// Direct access: whether, and where, this process may touch a neighbour's part of a window, by
// itself, for an operation of the program's.
//
// Invariants: memory is touched only while MPI's own rules let the operation touch it:
//   passive  this rank has an epoch open. Where MPI may put off taking its lock until an operation
//            needs it, one byte is fetched by MPI first, and waited for: once in an epoch, as a
//            lock is kept until it is given back. MPICH's device ch4 has the lock when
//            MPI_Win_lock returns.
//   fence    a fence that waited for all ranks has begun the epoch, and this rank has begun none
//            since; so MPI_MODE_NOPRECEDE, which lets a fence not wait, is not passed on.
//   start    the target is in the group, and has posted (post_board.hpp).
//
// Threads: any, as MPI's operations.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>

#include "mpi/datatype_map.hpp"
#include "rma/copy_runs.hpp"
#include "rma/window.hpp"

namespace perdure {

// Whether MPI makes by itself, as fast as we do, accumulates, and puts and gets whose bytes are
// together on both sides. Then nothing is made here in epochs of MPI_Win_start, where Open MPI's
// calls are short beside what counting the posts would take.
#ifdef OPEN_MPI
constexpr bool mpi_copies_one_run = true;
#else
constexpr bool mpi_copies_one_run = false;
#endif

struct Side {
  MPI_Count count;
  MPI_Datatype type;
};

// In a passive-target epoch fewer bytes are not worth the wait for the lock, unless more follow.
constexpr std::int64_t least_awaited_bytes = 16 << 10;

// What `count` items carry; negative: they can't be.
inline std::int64_t bytes_of(const DatatypeMap& map, MPI_Count count) {
  std::int64_t bytes = 0;
  if (count < 0 || __builtin_mul_overflow(count, map.size_bytes, &bytes)) return -1;
  return bytes;
}

// Where in this process displacement `at` of `target` is; null: MPI is to do the operation, as the
// target is elsewhere, or some of the operation's bytes would be outside of its window.
std::byte* reachable(const Window& window, int target, MPI_Aint at, const ByteSpan& span);

// MPI_Win_lock has returned, of `count` targets.
void note_lock(Window& window, std::size_t first, std::size_t count);

// Whether the target's memory may be accessed now, or the lock could not be had, with `error`.
bool may_access(Window& window, int target, std::int64_t bytes, int& error);

// Shows MPI a type that may be wrong: its errors are MPI's own, at the window.
int show_type(const Window& window, int target, MPI_Datatype type);

// The map of `type`, which MPI is shown first if this thread has not used it. Null: an error, or if
// there is none, MPI_DATATYPE_NULL.
const DatatypeMap* shown_map(const Window& window, int target, MPI_Datatype type, int& error);

}  // namespace perdure
