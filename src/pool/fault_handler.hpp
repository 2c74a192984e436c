// SPDX-License-Identifier: BSD-3-Clause
//
// Fault handler: the process's one handler of SIGSEGV, which asks those who protect pages whether a
// fault is theirs. A fault that nobody claims goes to the handler that was there before.
//
// A claimant is called on the faulting thread, which may hold any lock of the program: it uses
// atomics and system calls, and neither allocates nor locks a mutex. It returns true if the access
// is to be tried again. A judge is asked before all claimants, in the same way: it returns true if
// the access is a mistake of the program, which it has named; then nobody claims it.
#pragma once

#include <cstdint>

namespace perdure {

using FaultClaimant = bool (*)(std::uintptr_t address);

// Only faults by protection (SEGV_ACCERR) are shown to claimants. At most 4; once each.
void claim_faults(FaultClaimant claimant);
void judge_faults(FaultClaimant judge);

}  // namespace perdure
