/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_mpi.h: what Perdure adds to MPI: windows that survive a crash, and pools that belong to
 * the ranks of a communicator.
 *
 * Programs call standard MPI with standard MPI_Win handles. libperdure_mpi_<flavour>, built for
 * your MPI, comes before the MPI library (linked before it, or LD_PRELOAD) and takes the calls
 * that make, synchronise and free windows. A window is persistent when the MPI_Info of its creation
 * has the key "perdure_name", or when the environment says so; all others are left alone.
 *
 *     MPI_Info_set(info, "perdure_name", "ranks");
 *     MPI_Info_set(info, "perdure_pool", "/mnt/pmem/pagerank");
 *     MPI_Info_set(info, "perdure_commit", "fence/2");       // every second fence commits
 *     MPI_Win_allocate(bytes, 8, info, comm, &base, &win);   // filled from the newest version
 *     perdure_win_restart(win, &version);                    // which one; 0: there was none
 *
 * Info keys (a value that is not listed is an error, through the error handler of the communicator
 * or window)
 *   perdure_name        any UTF-8 text of 1 to 255 bytes; one window of a pool
 *   perdure_pool        directory of the pool; default $PERDURE_POOL. Windows of one pool commit
 *                       together, have one version number, and the same ranks
 *   perdure_mode        copy (default), twin, log, flush: see below
 *   perdure_commit      which calls commit: none (default) or a list of fence, wait, unlock,
 *                       unlock_all, flush_all, each with "/k" for every k-th one
 *   perdure_restore     newest (default), a version's number, or discard: start anew
 *   perdure_keep        versions that are kept, 1 (default) to 63; fixed when the pool is made
 *   perdure_async       true: a commit stages the contents in DRAM and returns; it becomes durable
 *                       at the next commit or perdure_commit_wait(). Modes copy and log
 *   perdure_checksum    true or false; default as perdure_array_flags
 *   perdure_free        keep (default) or delete: what MPI_Win_free does to the contents
 *   perdure_ranks       rows, same or by_hand: what becomes of the window where another number of
 *                       ranks goes on (docs/ranks.md). Of the window that opens the pool this, or
 *                       perdure_box, is PERDURE_ANY_RANKS. A row is a displacement unit
 *   perdure_box         "16x64 of 64x64 at 48,0": the memory is these cells, in displacement units,
 *                       of a global array; each rank has its own. Instead of perdure_ranks
 *   perdure_delay       virtual (default), wait or drain: enum perdure_delay
 *   perdure_job, perdure_emulate, perdure_threads, perdure_allow_older
 *                       as in perdure_options; all five on the window that opens the pool
 *
 * Modes
 *   copy    the MPI library's memory, or yours; a commit copies it to the pool
 *   log     the same, but only blocks that changed are written to the pool
 *   twin    MPI_Win_allocate gives memory in the pool, in two halves. Puts and gets on the window
 *           go to the working half; a commit flushes it, copies nothing, and swaps the halves.
 *           perdure_win_halves() names both
 *   flush   memory in the pool, one half, no versions: a commit makes durable what was written so
 *           far. For programs that keep two buffers themselves
 *
 * Environment, for programs that can't be changed: PERDURE_WINDOWS="pool=DIR;commit=fence;mode=log"
 * makes every window persistent that has no key of its own. Names are given in order of creation.
 *
 * Rules
 *   - A commit is collective over the ranks of the pool: every rank must reach it equally often.
 *   - A commit holds all operations of the epoch that it closes. Other windows of the pool must
 *     have no operations under way on this rank (PERDURE_E_STATE); in a passive-target epoch
 *     perdure_win_commit() completes them itself.
 *   - Any thread level; Perdure calls MPI from the caller's thread only.
 */
#ifndef PERDURE_PERDURE_MPI_H
#define PERDURE_PERDURE_MPI_H

#include <mpi.h>

#include "perdure/perdure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An assertion of MPI_Win_fence: this fence commits. OR it with MPI's own. */
#define PERDURE_MODE_COMMIT (1 << 28)

/* These return 0 or a PERDURE_E code; PERDURE_E_INVALID for a window that is not persistent. */

/* Makes all windows, arrays and scalars of the window's pool durable as one version, and stores its
 * number in *version (may be NULL). Collective over the pool. Completes the caller's operations of
 * an open passive-target epoch (MPI_Win_flush_all) and waits for the other ranks'. */
PERDURE_API int perdure_win_commit(MPI_Win win, uint64_t* version);

/* The version that the window's contents were restored from when it was made, the same on all
 * ranks; 0: the pool was new. Local. */
PERDURE_API int perdure_win_restart(MPI_Win win, uint64_t* version);

/* Mode twin: windows on the half of the last committed version and on the half that the next commit
 * will make the newest. They swap roles with every commit. MPI_WIN_BASE of each is its memory.
 * Each has epochs of its own; they are freed with `win`. INVALID in other modes, and with
 * PERDURE_WINDOWS unless that says halves=asked. Local. */
PERDURE_API int perdure_win_halves(MPI_Win win, MPI_Win* consistent, MPI_Win* working);

/* The pool of the window, for perdure_scalar(), perdure_array_open(), perdure_versions() and the
 * other calls of perdure.h. It has been restarted, and is closed with its last window. Local. */
PERDURE_API int perdure_win_pool(MPI_Win win, perdure_pool** pool);

/* As perdure_open(), for all ranks of `comm` (which is duplicated; the caller may free it). Rank r
 * holds its state in path/rank-r; `path` may be one shared directory or a node-local one of the
 * same name on every node. Collective over `comm`. Commits and restarts of the pool are collective
 * too: a version is one version of all ranks.
 *
 * Arrays as memory of ordinary windows: close the epoch (MPI_Win_fence, MPI_Win_wait, …) before
 * perdure_commit(), so that what others put into an array has arrived; it is flushed by its owner.
 * With perdure_commit_begin() a neighbour's put counts as a write to the array: put only after the
 * owner's perdure_before_write() has returned and the ranks have synchronised since. */
PERDURE_API int perdure_open_mpi(MPI_Comm comm, const char* path, const perdure_options* options,
                                 perdure_pool** pool);

#ifdef __cplusplus
}
#endif
#endif
