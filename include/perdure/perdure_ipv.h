/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_ipv.h: in-place versioning. A loop's arrays get a persistent version at every iteration,
 * at the addresses where they are, and nearly without copying.
 *
 *     perdure_pool *pool;  uint64_t version, iteration = 0;
 *     perdure_open("/mnt/pmem/heat", NULL, &pool);           // or perdure_open_mpi()
 *     perdure_scalar(pool, "iteration", &iteration, sizeof iteration);
 *     perdure_ipv_open(pool, NULL);
 *     perdure_ipv_object("u", u, cells * sizeof *u, NULL);   // contents as they are: version 0
 *     perdure_ipv_restart(&version);                         // takes the newest version
 *     while (iteration < iterations) {
 *       heat_step(u, cells);                                 // unchanged
 *       iteration++;
 *       perdure_ipv_persist(&version);                       // the persistence point
 *     }
 *     perdure_ipv_close();
 *     perdure_close(pool);
 *
 * By default (tier COPY) an object's memory stays the program's own. The pages that changed are
 * copied into the pool at the persistence point, past the cache. That is right for any program, in
 * any language, by any compiler. In tier STREAM the address shows a copy in the pool. The first
 * store of an iteration makes it show another one, and what the iteration does not overwrite is
 * copied there. A nest that overwrites a box of the object, compiled with perdure-clang --ipv, says
 * so in front of it, and then nothing of the box is copied. A double-buffered loop keeps two arrays
 * itself: perdure_ipv_pair(). (D. Li et al., in-place versioning; docs/ipv.md says what differs.)
 *
 * Conventions of perdure.h. One set of objects at a time in a process. Calls come from one thread,
 * stores to objects from any. No thread stores to an object during a persistence point.
 *
 * Caveats
 *   - The kernel can't store to what is write-protected; read() gives EFAULT, and a receive of MPI
 *     may end the job, as libraries let the kernel copy long messages. It concerns tier STREAM, the
 *     array of a pair that holds the version, and tier COPY before Linux 6.7 or where a container
 *     forbids userfaultfd(). In STREAM and COPY call perdure_ipv_touch() before. Pin an object
 *     (tier COPY) into which a receive is pending across a persistence point.
 *   - fork(): a child must not store to objects.
 *   - free() or munmap() of an object's memory ends the object: the next version and all later ones
 *     hold what it held then. After realloc() perdure_ipv_resize() is due (docs/ipv.md).
 */
#ifndef PERDURE_PERDURE_IPV_H
#define PERDURE_PERDURE_IPV_H

#include <stddef.h>
#include <stdint.h>

#include "perdure/perdure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* How the contents of an object come into its next version. */
enum perdure_ipv_tier {
  PERDURE_IPV_AUTO = 0,  /* COPY, which is right for every program */
  PERDURE_IPV_COPY = 1,  /* stays in DRAM; copied past the cache at the persistence point */
  PERDURE_IPV_STREAM = 2 /* lives in the pool, where copies swap roles; a box is written past the
                            cache, and what no box overwrites is copied when it is stored to. A
                            box is taken only while nobody else can look at the object
                            (docs/ipv_compiler.md, Onlookers) */
};

/* Gives a static array pages of its own, in a module that perdure-clang --ipv compiles, also if the
 * module names none of these functions:
 *     PERDURE_IPV_ARRAY double u[5000];
 */
#ifdef __clang__
#define PERDURE_IPV_ARRAY __attribute__((annotate("perdure_ipv")))
#else
#define PERDURE_IPV_ARRAY
#endif

/* All zero means the defaults. Environment PERDURE_IPV="tier=copy,lag=0,helper=on,every=2,
 * guard=off,threads=4,verify=on,report=FILE" overrides, for experiments. */
typedef struct perdure_ipv_options {
  int helper;         /* a thread that flushes beside the computation: 0 if a core is idle, 1 yes,
                         -1 no */
  unsigned threads;   /* that flush and copy at the persistence point; default 1 */
  unsigned every;     /* every so many calls of perdure_ipv_persist() commit; default 1 */
  int no_guard;       /* 1: objects are not write-protected. In tier COPY all of an object counts as
                         changed then; in STREAM a store that no hook announces damages the
                         committed version */
  int no_lag;         /* 1: a version is durable when perdure_ipv_persist() returns. Default: one
                         persistence point later, so that the program does not wait for it */
  const char* report; /* perdure_ipv_close() writes there, as JSON, what was done for each object;
                         default: nowhere */
} perdure_ipv_options;

typedef struct perdure_ipv_object_options {
  int tier;      /* enum perdure_ipv_tier */
  int own_pages; /* 1: nobody else's bytes are in the object's last page, as where it was allocated
                    in whole pages. Otherwise they may be: memory that is neither of
                    perdure_ipv_alloc() nor static is in tier COPY then */
} perdure_ipv_object_options;

/* Since perdure_ipv_open(). */
typedef struct perdure_ipv_object_status {
  int tier;                 /* in use now */
  uint64_t versions;        /* in which the object had changed */
  uint64_t rows;            /* of boxes that were announced and taken */
  uint64_t fresh_row_bytes; /* of boxes of which nothing had to be copied */
  uint64_t copied_bytes;    /* from the old copy, or out of DRAM */
  uint64_t flushed_bytes;
  uint64_t streamed_bytes; /* past the cache */
  uint64_t swaps;
  uint64_t swap_ns;
  uint64_t guard_faults; /* stores that no hook announced */
  uint64_t persist_ns;   /* kept waiting: at the persistence point and before first stores */
  uint64_t pool_bytes;   /* memory of the object's copies in the pool */
  uint64_t dram_bytes;   /* and besides */
} perdure_ipv_object_status;

/* Begins. `pool` is open and was not restarted. BUSY: the process has objects already. */
PERDURE_API int perdure_ipv_open(perdure_pool* pool, const perdure_ipv_options* options);

/* Names [address, address + bytes) as an object of the pool, of type PERDURE_BYTE, one copy in the
 * pool for each version that the pool keeps and one more; with lag, and unless its tier is COPY,
 * two more. Its contents are its own until a restart finds a version. Collective. Tier STREAM needs
 * whole pages: `address` a multiple of the page size, and the rest of the last page nobody else's
 * (own_pages; perdure_ipv_alloc(), or a static array of a program compiled with perdure-clang
 * --ipv); others fall back to COPY. Memory of the program's must not be freed before
 * perdure_ipv_restart().
 * INVALID: overlaps another object. SHAPE: the pool has it with another size, which
 * perdure_stored_shape() says: allocate that. perdure_ipv_resize() changes it after the restart. */
PERDURE_API int perdure_ipv_object(const char* name, void* address, size_t bytes,
                                   const perdure_ipv_object_options* options);

/* The two arrays of a double-buffered loop (Jacobi, lattice Boltzmann, waves), `bytes` bytes each,
 * as one object: an iteration reads one and overwrites the other, and they exchange roles at every
 * persistence point. Nothing is copied. At first the contents are in `a`; after a restart in the
 * array that was overwritten last (perdure_ipv_alive()). Three places in the pool, one more for
 * each version that it keeps beside the newest. Collective.
 *   - Between two persistence points the program stores to one of the two only, and to the other
 *     one after the next. A store to the array of the last version ends the program.
 *   - What one iteration stores to every later one stores to, before it is read in that array; what
 *     none does is equal in both, and is taken from `a`. Spot checks find breaches: an error of
 *     perdure_ipv_persist(), from then on. PERDURE_IPV=verify=on checks every element.
 *   - `a` and `b` begin at multiples of the page size, and the rest of their last pages is nobody
 *     else's: perdure_ipv_alloc(). Their pages move; they can't be pinned.
 * INVALID: they overlap, or do not begin at pages. STATE, at the restart: the pool's file or its
 * array can't hold a pair. */
PERDURE_API int perdure_ipv_pair(const char* name, void* a, void* b, size_t bytes);
/* Which array of the pair holds its contents: that which the next iteration reads. NOT_FOUND. */
PERDURE_API int perdure_ipv_alive(const char* name, void** array);

/* The object has `bytes` bytes from now on, perhaps none, and lies at `address`, where its contents
 * are: after realloc(), after a vector grew, or where it was, longer or shorter. The next version
 * is the first of that size; a restart brings back each with the size that it had, which
 * perdure_stored_shape() says before the object is named. Local, without a message, after
 * perdure_ipv_restart() and outside of persistence points; nobody stores to objects meanwhile. On
 * an error all is as before: NO_SPACE, NOT_FOUND, INVALID (it would overlap another object), STATE
 * (it is pinned). Memory that was freed or given to realloc() before is no object's; without this
 * call there is no version after realloc() (STATE at the persistence point). In tier STREAM the
 * object goes on in COPY. Space is kept as by perdure_array_resize(). */
PERDURE_API int perdure_ipv_resize(const char* name, void* address, size_t bytes);
/* The same of a pair: its contents are in `a`, which the next iteration reads. After a persistence
 * point, before the iteration stores. `a` and `b` are as perdure_ipv_pair() wants them. */
PERDURE_API int perdure_ipv_resize_pair(const char* name, void* a, void* b, size_t bytes);

/* What an object or pair is to the ranks together, for PERDURE_ANY_RANKS (perdure.h): `ranks` is of
 * enum perdure_ranks. Local, before the restart. With PERDURE_ROWS the bytes of the old ranks are
 * one list, of which each rank gets as many as its object has. With PERDURE_BY_HAND it keeps the
 * contents that it has, which may come from perdure_read(). A pair has them in `a`. NOT_FOUND. */
PERDURE_API int perdure_ipv_ranks(const char* name, int ranks);

/* Memory for objects: page-aligned, zeroed, whole pages. NULL if there is none. */
PERDURE_API void* perdure_ipv_alloc(size_t bytes);
/* Of an object it ends the object, as free() of other memory does; between perdure_ipv_object() and
 * perdure_ipv_restart() it is refused, and the memory stays. */
PERDURE_API void perdure_ipv_free(void* address);

/* As perdure_restart(), in its place: objects and scalars take the newest version. */
PERDURE_API int perdure_ipv_restart(uint64_t* version);

/* The persistence point: objects and scalars, as they are now, are the next version. Collective.
 * The next persistence point, perdure_ipv_wait() or perdure_ipv_close() makes it durable. *version
 * (may be NULL) is the newest durable one, which a restart finds at least. So a crash loses two
 * iterations at most: the one under way and the one before it. With no_lag, and while the pool
 * had other arrays, windows or files when it was restarted, the version is durable at once.
 * An error means that a version was not made (with lag: the one before) and that none was begun:
 * objects keep their contents, and the next call tries again. */
PERDURE_API int perdure_ipv_persist(uint64_t* version);

/* Makes the version durable that the last persistence point began. Collective. *version (may be
 * NULL) is the newest durable one then. */
PERDURE_API int perdure_ipv_wait(uint64_t* version);

/* Ends: objects keep their contents and addresses, in ordinary memory. Makes an unfinished version
 * durable first. Collective. */
PERDURE_API int perdure_ipv_close(void);

/* Before something stores to `bytes` bytes at `address` that can't be write-protected: the kernel,
 * a device. Until the next persistence point. Elsewhere it does nothing. */
PERDURE_API void perdure_ipv_touch(void* address, size_t bytes);

/* The object that holds `address` must not move or be write-protected until it has been unpinned as
 * often: it is registered with a network, or a receive is pending. In tier COPY all of it counts as
 * changed meanwhile. STATE: it is a pair, or in tier STREAM since perdure_ipv_restart().
 * NOT_FOUND: no object holds `address`. */
PERDURE_API int perdure_ipv_pin(const void* address);
PERDURE_API int perdure_ipv_unpin(const void* address);

PERDURE_API int perdure_ipv_status(const char* name, perdure_ipv_object_status* status);

/* The three calls of the paper (section 4.2), for programs that place them by hand.
 * perdure_flush_init() starts the helper thread and its queue; `threads` of them share each request
 * (0: with objects `options.threads`, which another number must not contradict, else 1).
 * perdure_flush_async(): [address, address + bytes) will not be stored to before the next
 * persistence point; it is flushed beside the computation. perdure_flush_barrier() returns when
 * what was begun on this rank is flushed; alone, it does what perdure_ipv_wait() does. Without
 * objects they flush any memory. */
PERDURE_API int perdure_flush_init(unsigned threads);
PERDURE_API int perdure_flush_async(const void* address, size_t bytes);
PERDURE_API int perdure_flush_barrier(void);

#ifdef __cplusplus
}
#endif
#endif
