/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_mpi.h: pools that belong to the ranks of a communicator.
 *
 * Link libperdure_mpi_<flavour>, built for your MPI, instead of libperdure; it holds everything of
 * perdure.h too. Needs MPI_THREAD_SINGLE only: Perdure calls MPI from the caller's thread.
 */
#ifndef PERDURE_PERDURE_MPI_H
#define PERDURE_PERDURE_MPI_H

#include <mpi.h>

#include "perdure/perdure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* As perdure_open(), for all ranks of `comm` (which is duplicated; the caller may free it). Rank r
 * holds its state in path/rank-r; `path` may be one shared directory or a node-local one of the
 * same name on every node. Collective over `comm`. Commits and restarts of the pool are collective
 * too: a version is one version of all ranks.
 *
 * One-sided programs: close the epoch (MPI_Win_fence, MPI_Win_wait, …) before perdure_commit(), so
 * that what others put into an array has arrived; it is flushed by its owner.
 * With perdure_commit_begin() a neighbour's put counts as a write to the array: put only after the
 * owner's perdure_before_write() has returned and the ranks have synchronised since. */
PERDURE_API int perdure_open_mpi(MPI_Comm comm, const char* path, const perdure_options* options,
                                 perdure_pool** pool);

#ifdef __cplusplus
}
#endif
#endif
