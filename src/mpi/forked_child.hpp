// SPDX-License-Identifier: BSD-3-Clause
//
// What a forked child gets for the calls of MPI that Perdure takes: MPI_ERR_OTHER, with one line on
// stderr. MPI allows a child no calls, and an error handler that ends the job would end its
// parent's; so nothing of MPI is called there, and what the parent has open stays as it is.
//
// Threads: any; may be used in a signal handler.
#pragma once

#include "mpi/taken_call.hpp"

namespace perdure {

// The call's names lead to the refusal from now on: in a child, which has one thread.
void refuse_in_child(TakenCall& taken);

}  // namespace perdure
