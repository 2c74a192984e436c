// SPDX-License-Identifier: BSD-3-Clause
//
// Ends the process where a program hangs: with 77, which CTest takes for a skipped test, if the MPI
// library hangs by itself, and with 3 if it does with the cache.
//
// Threads: one.
#ifndef PERDURE_TESTS_MPIIO_ORACLE_WATCHDOG_HPP
#define PERDURE_TESTS_MPIIO_ORACLE_WATCHDOG_HPP

#include <cstdint>

namespace oracle {

enum class Run { plain, cached };

// From now on the run of that program may take a minute, until the next call. Seconds say nothing
// of a program's speed here: an undisturbed run takes a hundredth of one.
void watch(Run run, std::uint64_t seed, std::uint64_t program);
void watch_no_more();

}  // namespace oracle
#endif
