// SPDX-License-Identifier: BSD-3-Clause
//
// Which rank a process is in its job, and the file that it writes there.
//
// Threads: as environment(). No failure: a process that no launcher placed is rank 0 of 1.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace perdure {

struct ProcessPlace {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;  // more than `rank`
};

// As the launcher says in the environment (PMI, PMIx, Open MPI), before MPI begins.
ProcessPlace place_of_environment();

// `path` with %p (the process), %r and %% replaced. Where there are several ranks and neither %p
// nor %r is in it, ".RANK" is appended, as ranks must not write to one file.
std::string expand_path(const std::string& path, std::uint64_t process, ProcessPlace place);

// The words of the command that this process was started by.
std::vector<std::string> command_words();

}  // namespace perdure
