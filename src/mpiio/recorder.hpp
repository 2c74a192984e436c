// SPDX-License-Identifier: BSD-3-Clause
//
// Recorder: with PERDURE_RECORD=PREFIX in the environment, every rank writes what it did with each
// MPI file, cached or not, to PREFIX.RANK: a line of JSON when the file is closed, and one of the
// whole run when MPI ends. `perdure cache predict` reads them.
//
// It sees all calls on files first (Call::observer), and is not there at all without the
// variable. Times are those of the calls alone; what counting takes is reported apart. The wait of
// a nonblocking access that the MPI library does later is not seen.
//
// Threads: as MPI says of each call. Failure: a record that can't be written is not; the program
// does not notice.
#pragma once

namespace perdure {

// Once, when the calls on files were directed.
void record_file_calls();

}  // namespace perdure
