// SPDX-License-Identifier: BSD-3-Clause
//
// Process end: the one list of what a process may have open when it ends, and what is done with
// that. docs/ends.md has the whole table: what is open, by how a process ends.
//
// Two ends can be seen: MPI_Finalize, to which all ranks come, so that what is collective can be
// done; and exit(), a return from main() too, to which a process may come alone, so that it does
// only what it can alone. All others (a signal, abort(), _exit(), MPI_Abort) run nothing of ours:
// what lies in files and in shared memory stays, and is taken up by the next start, by `perdure
// run`, or by a command.
//
// Invariants
//   base.E1  Nothing becomes a version that the program did not ask for.
//   base.E2  At exit() nothing is waited for without a bound: a thread ends what is open, and
//       exit() goes on when that has not come further for `end_patience_ms`. What the thread that
//       calls exit() holds (from a signal handler, say) is not waited for longer either. Nothing is
//       unmapped, as other threads run on.
//   base.E3  A process that leaves bytes where no reader of the file finds them says so on stderr
//       and does not end with 0.
//   base.E4  A forked child ends nothing of its parent's: each action looks (fork_guard.hpp).
//
// At exit() it is the library's last destructor, after all that the program registered and all of
// its own destructors, which may still use and close what is open.
//
// Threads: any; ends come one at a time. Failure: said on stderr by the actions.
#pragma once

#include <cstdint>

namespace perdure {

// In the order in which they end. Objects of in-place versioning end as their pool does; writer
// tokens, and the locks of pools, the kernel gives up.
enum class OpenKind : std::uint8_t {
  cached_files,  // written back and closed: mpiio/file_ends.cpp
  windows,       // freed, where all ranks come: rma/window_ends.cpp
  pools,         // what is on its way to their levels arrives: capi/pool_ends.cpp
  kinds,
};

enum class ProcessEnd : std::uint8_t { finalize, exit };

struct EndOfKind {
  bool (*any_open)();
  void (*end)(ProcessEnd end);
};
// What is opened of this kind ends so from now on; `how` lives for ever. Idempotent.
void end_with_process(OpenKind kind, const EndOfKind& how);
// In the order of kinds.
void end_open_things(ProcessEnd end);

// base.E2. Whoever ends something has come further.
constexpr std::uint32_t end_patience_ms = 60'000;
void note_end_progress();

// base.E3: the process will end with this code where it would with 0.
constexpr int left_behind_code = 122;
void note_left_behind();

}  // namespace perdure
