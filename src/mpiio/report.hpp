// SPDX-License-Identifier: BSD-3-Clause
//
// Lines of JSON that a process writes about its files: PREFIX.RANK, with the prefix from an
// environment variable.
//
// Threads: any. Failure: a line that can't be written is not; the program does not notice.
#pragma once

#include <string>

#include "mpiio/open_file.hpp"

namespace perdure {

// Appends a line (file_record.hpp), if `variable` is set.
void append_line(const char* variable, const std::string& line);

// What the process did with a cached file that is closed, as the cache counted it: to
// PERDURE_CACHE_REPORT, and to the file's record if there is one.
void report_file(const OpenFile& open, const Status& closed);

}  // namespace perdure
