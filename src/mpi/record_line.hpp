// SPDX-License-Identifier: BSD-3-Clause
//
// Lines of JSON that a process writes about what it does with MPI: to PREFIX.RANK, with the prefix
// from an environment variable.
//
// Threads: any. Failure: a line that can't be written is not; the program does not notice.
#pragma once

#include <string>

namespace perdure {

// The program asks for a record of its files and windows: PREFIX.
inline constexpr const char* record_variable = "PERDURE_RECORD";

// Appends a line, if `variable` is set.
void append_line(const char* variable, const std::string& line);

// Of ranks that share memory, as mpi/node_map.hpp has it, without a collective call.
std::string node_name();

}  // namespace perdure
