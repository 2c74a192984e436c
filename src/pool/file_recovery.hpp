// SPDX-License-Identifier: BSD-3-Clause
//
// File recovery: who gives the files that were committed with a pool (companion.hpp) what they had
// at its version, where another number of ranks is about to go on with it. Files belong to no rank:
// they are recovered first, and there is nothing of them to divide.
//
// Threads: set when the library is loaded.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "pmem/region.hpp"

namespace perdure {

// Local, on one rank of those that see the directory. Afterwards nothing of the files is beside the
// pool; what could not be recovered is, and the error names it. Code::unsupported: only the ranks
// that made the pool can.
using FileRecovery = Status (*)(const std::string& pool, const JobId& job, std::uint64_t version,
                                std::uint64_t incarnation);

void set_file_recovery(FileRecovery recovery);
// Null: this library knows no such files.
FileRecovery file_recovery();

}  // namespace perdure
