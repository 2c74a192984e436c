// SPDX-License-Identifier: BSD-3-Clause
//
// With PERDURE_RECORD=PREFIX in the environment, every rank writes what windows it had to
// PREFIX.RANK: a line of JSON when a window is freed, or when MPI ends: its kind and bytes, and how
// its epochs ended. `perdure advise` reads them; the lines of files are mpiio/recorder.hpp's.
//
// It sees the calls first (Call::observer), and is not there at all without the variable. Puts and
// gets are not counted, so they cost what they did.
//
// Threads: any. Failure: a window for which there is no room in the table has no line.
#pragma once

namespace perdure {

// Once, when the calls on windows were directed.
void record_window_calls();

}  // namespace perdure
