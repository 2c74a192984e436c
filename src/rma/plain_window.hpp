// SPDX-License-Identifier: BSD-3-Clause
//
// Windows and attached regions that stay plain under PERDURE_WINDOWS, because they cannot be made
// persistent: the program knows nothing of Perdure, and must not end for it. The first of a process
// is reported on stderr, the others are counted when the process ends.
//
// Invariants
//   - A window stays plain on all of its ranks or on none, also where one of them alone lacks room.
//   - Only a lack leaves it plain. What a restart might want back (a damaged pool, one of another
//     job, shape or format) is an error for these programs too.
//
// Threads: any. No failure.
#pragma once

#include <mpi.h>

#include <initializer_list>
#include <string>

#include "base/status.hpp"

namespace perdure {

// Collective, with the same answer on all ranks: each that failed did so with one of `lacks`.
// Code::peer_failed, by which a rank learns that another one failed, counts as neither.
bool agree_stays_plain(MPI_Comm comm, const Status& local, std::initializer_list<Code> lacks);

// Of a window, `what` is for people: "window 'window-7'". Rank 0 of `comm` reports it.
void report_plain_window(MPI_Comm comm, const std::string& what, const Status& why);
// Of an attached region; each rank reports its own.
void report_plain(const std::string& what, const Status& why);

}  // namespace perdure
