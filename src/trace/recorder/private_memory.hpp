// SPDX-License-Identifier: BSD-3-Clause
//
// Private memory: where the recorder's C++ objects are inside of a program that is recorded.
//
// libperdure_trace_rt.so has its own operator new, over address space that is reserved once. So
// neither the program's heap nor its mappings depend on what the recorder needs and when its helper
// needs it: the addresses that are recorded, and which of them meet in the cache, stay the same.
//
// Invariants: memory that is given back is used again, in blocks of powers of two; what is not used
// is not resident. Nothing is reserved before the first use. Threads: all. Failure: where the
// address space can't be reserved (ulimit -v), or is used up, memory comes from malloc(), and
// addresses may differ from run to run.
#pragma once

namespace perdure::trace {

// Around fork(), whose child may go on using it.
void lock_private_memory();
void unlock_private_memory();

}  // namespace perdure::trace
