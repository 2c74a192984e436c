// SPDX-License-Identifier: BSD-3-Clause
//
// What programs do not ask for, since an MPI library by itself answers it wrongly or by chance, so
// that there is nothing to compare with. Seen of MPICH 4.0.2 (ROMIO) and Open MPI 4.1.4 (OMPIO);
// docs/testing.md has the list. Pure.
#ifndef PERDURE_TESTS_MPIIO_ORACLE_LIMITS_HPP
#define PERDURE_TESTS_MPIIO_ORACLE_LIMITS_HPP

#include <mpi.h>

#include "transfer.hpp"

namespace oracle::limits {

#ifdef OPEN_MPI
constexpr bool ompio = true;
#else
constexpr bool ompio = false;
#endif

// --- opening -------------------------------------------------------------------------------------

// OMPIO with several ranks lets all of them create a file, and some fail with MPI_MODE_EXCL; where
// there is none and it is not to be made, some ranks wait for the others for ever.
constexpr int possible_mode(int mode, bool exists, int ranks) {
  if (!ompio || ranks == 1) return mode;
  if (!exists) return MPI_MODE_RDWR | MPI_MODE_CREATE;
  return mode & ~MPI_MODE_EXCL;
}

// ROMIO's hidden file of the shared pointer may be the same for two handles of a file, of which
// one is opened to append.
constexpr int mode_of_second(int mode) {
  return ompio ? mode : mode & ~MPI_MODE_APPEND;
}

// --- shared pointers -----------------------------------------------------------------------------

// Not of the second handle, see above. OMPIO with several ranks fails or hangs on them.
constexpr bool has_shared_pointer(int ranks, bool second) {
  return !second && !(ompio && ranks > 1);
}

// OMPIO has one for all handles of a file, which begins anew with each of them. MPI 4.0, 14.4.4,
// requires one for each MPI_File_open.
constexpr bool second_takes_pointer() {
  return ompio;
}

// --- reading past the end ------------------------------------------------------------------------

// Whether the status of a read says how much there was. ROMIO says that all was read into scattered
// memory, by nonblocking collective calls, and by nonblocking ones in atomic mode. OMPIO says so of
// collective calls, and never completes a nonblocking or split one.
constexpr bool tells_short_reads(Form form, bool atomic) {
  if (ompio) return form == Form::blocking;
  return form != Form::nonblocking_collective && !(form == Form::nonblocking && atomic);
}

// Whether the individual pointer is where the access ended. ROMIO's may be an etype or a block
// short in a view with gaps.
constexpr bool tells_position(bool gaps) {
  return ompio || !gaps;
}

// --- the rest ------------------------------------------------------------------------------------

// Both take a split call that they refused for one that is under way. OMPIO does not refuse
// collective calls that the mode forbids: it goes on, by the ranks, until a system call fails.
constexpr bool may_be_refused(Form form) {
  return ompio ? form == Form::blocking || form == Form::nonblocking : form != Form::split;
}

// OMPIO's collective reads on more than two ranks may hang.
constexpr bool reads_right(Form form, int ranks) {
  return !ompio || ranks <= 2 || form == Form::blocking || form == Form::nonblocking;
}

// Two runs of one program gave different files with OMPIO and several ranks, where these did not
// synchronise after each write.
constexpr bool settles_after_writes(int ranks) {
  return ompio && ranks > 1;
}

// OMPIO seeks elsewhere than to the end once a view was set; ROMIO to before the view's begin if
// the file ends before it.
constexpr bool seeks_to_end(bool has_view, bool ends_before_view) {
  return ompio ? !has_view : !ends_before_view;
}

// OMPIO reads what it allocates at the handle's pointer, and writes it after that;
// MPI 4.0, 14.2.5, requires what was there to stay.
constexpr bool preallocates() {
  return !ompio;
}

}  // namespace oracle::limits
#endif
