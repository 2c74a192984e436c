// SPDX-License-Identifier: BSD-3-Clause
//
// What a process did with a cached file, as a line of JSON (mpi/record_line.hpp).
//
// Threads: any. Failure: a line that can't be written is not; the program does not notice.
#pragma once

#include "mpiio/open_file.hpp"

namespace perdure {

// What the process did with a cached file that is closed, as the cache counted it: to
// PERDURE_CACHE_REPORT, and to the file's record if there is one.
void report_file(const OpenFile& open, const Status& closed);

}  // namespace perdure
