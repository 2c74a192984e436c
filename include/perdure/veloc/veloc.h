/* SPDX-License-Identifier: BSD-3-Clause
 *
 * veloc.h: the client interface of VELOC 1.x, served by pools of Perdure. Written from VELOC's
 * public documentation (veloc.readthedocs.io); docs/veloc.md says what differs.
 *
 *     cc -I<prefix>/include/perdure/veloc heat.c -lperdure_veloc     in place of -lveloc-client
 *
 * Conventions
 *   - Every call returns VELOC_SUCCESS or VELOC_FAILURE, with a sentence on standard error; but
 *     VELOC_Restart_test and VELOC_Recover_size a number.
 *   - Init, Finalize, Restart_test, and the begin and end of a phase are called by all processes of
 *     the communicator in the same order; if one fails in them, all do.
 *   - One thread calls.
 */
#ifndef PERDURE_VELOC_H
#define PERDURE_VELOC_H

#include <mpi.h>
#include <stddef.h>

#if defined(__GNUC__)
#define PERDURE_VELOC_API __attribute__((visibility("default")))
#else
#define PERDURE_VELOC_API
#endif

#define VELOC_SUCCESS 0
#define VELOC_FAILURE (-1)

#define VELOC_MAX_NAME 1024 /* bytes of a name that VELOC_Route_file gives */

/* Which regions: all, those of the list, or all but those of the list. */
#define VELOC_RECOVER_ALL 0
#define VELOC_RECOVER_SOME 1
#define VELOC_RECOVER_REST 2
#define VELOC_CKPT_ALL 0
#define VELOC_CKPT_SOME 1
#define VELOC_CKPT_REST 2

#ifdef __cplusplus
extern "C" {
#endif

/* The processes of `comm` checkpoint together; with _single each one by itself, under a number that
 * no other has. */
PERDURE_VELOC_API int VELOC_Init(MPI_Comm comm, const char* config_file);
PERDURE_VELOC_API int VELOC_Init_single(unsigned int unique_id, const char* config_file);
/* `drain` is not 0: waits for what is on its way to the persistent directory. */
PERDURE_VELOC_API int VELOC_Finalize(int drain);

/* Local. A region that is named again has another place or size from then on. */
PERDURE_VELOC_API int VELOC_Mem_protect(int id, void* memory, size_t count, size_t base_size);
PERDURE_VELOC_API int VELOC_Mem_unprotect(int id);
PERDURE_VELOC_API int VELOC_Mem_clear(void);

/* Where to write, or in a restart to read, the file `original` between begin and end. */
PERDURE_VELOC_API int VELOC_Route_file(const char* original, char* routed);

/* A version is durable in the scratch directory when _end has returned on any process. */
PERDURE_VELOC_API int VELOC_Checkpoint_begin(const char* name, int version);
PERDURE_VELOC_API int VELOC_Checkpoint_mem(void);
PERDURE_VELOC_API int VELOC_Checkpoint_selective(int mode, int* ids, int id_count);
PERDURE_VELOC_API int VELOC_Checkpoint_end(int success);
PERDURE_VELOC_API int VELOC_Checkpoint_wait(void);
PERDURE_VELOC_API int VELOC_Checkpoint_finished(void);
PERDURE_VELOC_API int VELOC_Checkpoint(const char* name, int version);

/* The highest version below `max_version` (0: no limit) that all processes have. */
PERDURE_VELOC_API int VELOC_Restart_test(const char* name, int max_version);
PERDURE_VELOC_API int VELOC_Restart_begin(const char* name, int version);
PERDURE_VELOC_API int VELOC_Recover_size(int id); /* in bytes */
PERDURE_VELOC_API int VELOC_Recover_selective(int mode, int* ids, int id_count);
PERDURE_VELOC_API int VELOC_Recover_mem(void);
PERDURE_VELOC_API int VELOC_Restart_end(int success);
PERDURE_VELOC_API int VELOC_Restart(const char* name, int version);

#ifdef __cplusplus
}
#endif
#endif
