// SPDX-License-Identifier: BSD-3-Clause
//
// Pool ends: pools that the program has not closed when it ends (base/process_end.hpp). Their
// newest version is durable since its commit returned; what was stored since is given up, and so is
// a commit that was begun and not waited for (base.E1). What is on its way to their levels arrives:
//
//   MPI_Finalize  as perdure_close() waits for it, as far as patience goes, where the pool belongs
//                 to the ranks of a communicator. Then the launcher hears that the pool is closed.
//   exit()        what this process is draining, for at most `drain_patience`; what other ranks
//                 would have to do is not waited for.
//
// The handle stays valid: perdure_close() may come after MPI_Finalize.
//
// Threads: any. Failure: said on stderr; the versions stay in the pool.
#pragma once

struct perdure_pool;

namespace perdure {

void note_opened(perdure_pool& pool);
void note_closed(const perdure_pool& pool);

}  // namespace perdure
