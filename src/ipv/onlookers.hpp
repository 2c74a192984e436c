// SPDX-License-Identifier: BSD-3-Clause
//
// Onlookers: whoever could look at an object, or store to it, while a nest of the calling thread
// overwrites a box of it. While a box is announced the object's address shows a half-made copy, so
// there is none unless nobody can. Asked of the kernel when a box is announced: until the nest ends
// the thread makes no call, so nothing of this changes by the program's doing.
//
// Invariants: may_look() is empty only if
//   ipv.O1  no other thread or process shares the memory, except Perdure's own threads, and those
//       that the MPI library had when MPI_Init returned. Threads of OpenMP are others: they stay
//       when a region has ended. While there are such threads, the kernel does not tell a process
//       that shares the memory (clone(2) with CLONE_VM alone).
//   ipv.O2  no signal has a handler, except Perdure's, those that MPI_Init installed, and
//       gfortran's.
//   ipv.O3  no process traces this one.
//   ipv.O4  no memory is pinned for a device, beyond what was when MPI_Init returned.
//   ipv.O5  the thread has never used io_uring, which reads and stores beside it.
//   ipv.O6  the process has no context of asynchronous I/O (io_setup(2)).
//   ipv.O7  no byte of the object was lent to MPI (base/guests.hpp): given to a call after which
//       others may still read or store it, whether or not that is complete.
//   ipv.O8  if an MPI library is loaded, its calls come through Perdure.
// What can't be asked may be: old kernels, a sandbox that refuses. Not seen: a process that reads
// this one's memory (process_vm_readv, a debugger that attaches in between), memory that a device
// reads and of which the kernel counts nothing, pages in a pipe or a socket (vmsplice,
// MSG_ZEROCOPY), and an MPI library that is linked statically.
//
// Threads: the one that announces boxes. Failure: never; an answer that can't be had is a reason.
#pragma once

#include <cstdint>
#include <string>

#include "base/file_handle.hpp"

namespace perdure {

class Onlookers {
 public:
  // Why somebody may look at [low, high); empty: nobody can.
  std::string may_look(std::uintptr_t low, std::uintptr_t high);

 private:
  std::string status();
  bool has_asynchronous_io();
  bool has_unwatched_mpi();

  FileHandle status_file_;  // /proc/self/status, kept open: it is asked for each box
  FileHandle contexts_file_;
  unsigned long long libraries_ = 0;  // loaded so far, when has_unwatched_mpi() looked
  bool loaded_mpi_ = false;
};

}  // namespace perdure
