/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure.h: named arrays and scalars that survive a crash.
 *
 * A pool holds named arrays and scalars of one job: one file per rank and a job record, in a
 * directory on persistent memory, on tmpfs or on a disk. A commit makes all of them durable as one
 * version; after a crash, restart gives every rank the bytes of one committed version.
 *
 *     perdure_pool *pool;  perdure_array *u;  uint64_t iteration = 0, version;
 *     perdure_open("/mnt/pmem/heat", NULL, &pool);
 *     perdure_array_open(pool, "u", PERDURE_DOUBLE, 1, &cells, PERDURE_TWIN, NULL, &u);
 *     perdure_scalar(pool, "iteration", &iteration, sizeof iteration);
 *     perdure_restart(pool, &version);                  // 0: nothing was committed yet
 *     while (iteration < iterations) {
 *       heat_step(perdure_consistent(u), perdure_working(u), cells);
 *       iteration++;
 *       perdure_commit(pool, &version);                 // the two copies swap roles
 *     }
 *     perdure_close(pool);
 *
 * Conventions
 *   - Every call returns 0 or a negative PERDURE_E code, and on failure leaves its out-parameters
 *     alone. perdure_last_error() gives the sentence, per thread.
 *   - Collective: with perdure_mpi.h a pool belongs to a communicator, and open, restart, restore,
 *     delete_version, commit, commit_due, commit_begin, commit_wait, levels_wait and close are
 *     called by all its ranks in the same order. If one rank fails in such a call, all return an
 *     error (PERDURE_E_PEER_FAILED on the others). Calls that do not match fail on all ranks with
 *     PERDURE_E_INVALID and a sentence that names two of them; then nothing was done, and all may
 *     go on. Without MPI a pool has one rank.
 *   - Local: all other calls. Arrays and scalars are each rank's own: ranks may have other ones, in
 *     other shapes and modes.
 *   - Threads: one thread at a time calls into a pool; a second one gets PERDURE_E_STATE. Different
 *     pools are independent.
 *   - A process that was forked off gets PERDURE_E_STATE for the pools of its parent. It keeps none
 *     of them locked.
 *   - Sizes are in bytes, shapes in elements, times in nanoseconds.
 *
 * Caveats
 *   - On tmpfs a pool survives the death of processes, not of the node: see
 *     perdure_pool_status.survives_power_failure.
 *   - Arrays can be added, resized and removed at any time, from the next commit on.
 *   - A pool is tied to its number of ranks, unless it is opened with PERDURE_ANY_RANKS.
 */
#ifndef PERDURE_PERDURE_H
#define PERDURE_PERDURE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#if defined(__GNUC__)
#define PERDURE_API __attribute__((visibility("default")))
#else
#define PERDURE_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct perdure_pool perdure_pool;
typedef struct perdure_array perdure_array;

enum perdure_error {
  PERDURE_OK = 0,
  PERDURE_E_INVALID = -1,       /* an argument can't be right */
  PERDURE_E_STATE = -2,         /* not allowed now, for example commit before restart */
  PERDURE_E_NOT_FOUND = -3,     /* no such pool, array or version */
  PERDURE_E_IO = -4,            /* the operating system or the device refused */
  PERDURE_E_NO_SPACE = -5,      /* device full, or the pool's slot is full */
  PERDURE_E_BUSY = -6,          /* another live process holds the pool */
  PERDURE_E_FOREIGN = -7,       /* the pool, or a rank's file, is another job's, rank's or user's */
  PERDURE_E_RANKS = -8,         /* the pool was made by another number of ranks */
  PERDURE_E_SHAPE = -9,         /* type, shape or mode differs from what the pool holds */
  PERDURE_E_DAMAGED = -10,      /* a checksum or an invariant of the format does not hold */
  PERDURE_E_NEWER_FORMAT = -11, /* written by a newer Perdure */
  PERDURE_E_UNSUPPORTED = -12,  /* this machine lacks what was asked for */
  PERDURE_E_PEER_FAILED = -13   /* another rank of this collective call failed */
};

enum perdure_type {
  PERDURE_BYTE = 1,
  PERDURE_INT32 = 2,
  PERDURE_INT64 = 3,
  PERDURE_FLOAT = 4,
  PERDURE_DOUBLE = 5,
  PERDURE_COMPLEX_DOUBLE = 6,
  PERDURE_UINT32 = 7,
  PERDURE_UINT64 = 8,
  PERDURE_BOOL = 9,  /* 1 byte */
  PERDURE_TEXT = 10, /* of scalars only: UTF-8, up to a zero byte or the end */
  PERDURE_INT8 = 11,
  PERDURE_INT16 = 12,
  PERDURE_UINT16 = 13,
  PERDURE_COMPLEX_FLOAT = 14
};

enum perdure_mode {
  /* One buffer in DRAM. Commit copies it, past the cache, to one of keep + 1 copies in
   * the pool. */
  PERDURE_COPY = 1,
  /* keep + 1 copies in the pool. The application reads perdure_consistent() and writes all of
   * perdure_working(); commit flushes the working copy and they swap roles. Nothing is copied. */
  PERDURE_TWIN = 2,
  /* As copy, but only pages that changed are copied: found by the kernel (Linux 6.7; before, and
   * where containers forbid userfaultfd, by page protection: then system calls that store into the
   * array, as read() and MPI's receives on a node do, fail with EFAULT), or, with PERDURE_MARKS,
   * named through perdure_mark(), or, with PERDURE_COMPARE, by comparing. Changes are also found by
   * comparing in arrays of up to 16 KiB, in buffers of the program's that begin at no page, in
   * shared memory, and in a process with pinned pages (io_uring, InfiniBand) or CUDA. A read or
   * receive that is pending while a commit runs is not seen: let it complete before. */
  PERDURE_LOG = 3,
  /* One copy in the pool, which the application reads and writes, and no versions of it: commit
   * makes durable what was written so far. After a crash it holds what had reached the medium. */
  PERDURE_FLUSH = 4
};

enum perdure_array_flags {
  PERDURE_CHECKSUM = 1,    /* checksum every block of data (default for copy and log) */
  PERDURE_NO_CHECKSUM = 2, /* only metadata is checked (default for twin; flush has no other) */
  PERDURE_MARKS = 4,       /* log mode: the application calls perdure_mark() */
  PERDURE_COMPARE = 8      /* log mode: every page is compared with the pool's; finds all stores,
                              of other processes and of devices too */
};

enum perdure_open_flags {
  PERDURE_CREATE = 1,      /* make the pool if it does not exist (default when flags are 0) */
  PERDURE_MUST_EXIST = 2,  /* PERDURE_E_NOT_FOUND instead of making one */
  PERDURE_DISCARD = 4,     /* throw away what an existing pool of this job holds */
  PERDURE_ALLOW_OLDER = 8, /* if the newest version is damaged, restore the older one if it is
                              whole; otherwise that is PERDURE_E_DAMAGED */
  PERDURE_ANY_JOB = 16,    /* accept a pool of another job name, or one that was made in another
                              directory (moved, copied, or put in the place of this one) */
  PERDURE_ANY_OWNER = 32,  /* accept a directory and files that another user owns or may write to:
                              whoever can write them can change what this job computes. Also
                              $PERDURE_ANY_OWNER=1 */
  PERDURE_ANY_RANKS = 64   /* accept a pool that another number of ranks made, all of whose files
                              all ranks see in `path`: perdure_restart() divides anew what it holds,
                              and from the first commit on it is a pool of this number of ranks */
};

/* What an array is to the ranks together, for a pool that another number of ranks made. Where none
 * is said, its box counts (perdure_array_box()); without that the restart is refused (RANKS). */
enum perdure_ranks {
  PERDURE_ROWS = 1,   /* one list over all ranks, in rank order: the first extent is divided anew.
                         Each rank gets as many rows as its shape asks for, which must be all of
                         them together; evenly with `shape` NULL */
  PERDURE_SAME = 2,   /* equal on all ranks, which is checked */
  PERDURE_BY_HAND = 3 /* the array begins as a new one; perdure_read() has the old contents */
};

/* How the time of emulated memory passes. */
enum perdure_delay {
  PERDURE_DELAY_VIRTUAL = 0, /* it is counted, and nothing waits */
  PERDURE_DELAY_WAIT = 1,    /* all of it is waited for */
  PERDURE_DELAY_DRAIN = 2 /* writes drain while the program goes on; what is left is waited for */
};

/* All zero means the defaults. */
typedef struct perdure_options {
  unsigned flags;        /* enum perdure_open_flags */
  const char* job;       /* name of the job that owns the pool; default: the program's name */
  const char* emulate;   /* one of `perdure devices`, e.g. "paper-nvm"; default $PERDURE_EMULATE */
  int delay;             /* enum perdure_delay */
  unsigned copy_threads; /* threads that copy and flush; default 1 */
  unsigned keep;         /* versions that can be restored, 1 to 63. Each one more costs the size of
                            the arrays in the pool. Fixed when the pool is made: SHAPE if it has
                            another number. 0: what it has, or 1 if it is made */
  const char* levels;    /* what is kept beyond the pool: "key=value;key=value", or a file of such
                            lines; "redundancy=partner;every=10;drain=/scratch/me", for example.
                            docs/levels.md has the keys. Default $PERDURE_LEVELS, or a copy of every
                            10th version on another node where there are several */
} perdure_options;

enum perdure_direction { PERDURE_TO_HOST = 1, PERDURE_TO_DEVICE = 2, PERDURE_WITHIN_DEVICE = 3 };

/* Functions by which memory is reached that is neither the host's nor of an NVIDIA or AMD GPU: of
 * SYCL, Level Zero or OpenMP (docs/devices.md). Each gets `context`, and returns 0, or else what
 * needed it fails (IO). They are called by any thread, one at a time, until the pool is closed.
 * All but `copy` may be NULL: if copies are asked of the queue that the program works with,
 * `follow` and `hold`; if a copy is done when `copy` returns, `wait`; without `allocate` there is
 * no snapshot. */
typedef struct perdure_device {
  void* context;
  /* Asks for a copy of `bytes` bytes, after those that were asked for before. `direction` is of
   * enum perdure_direction; an address inside an array is one of its buffer and an offset. */
  int (*copy)(void* context, void* to, const void* from, size_t bytes, int direction);
  /* Copies asked for from now on begin after what the program has asked of the device so far. */
  int (*follow)(void* context);
  /* What the program asks of the device from now on begins after the copies asked for so far. */
  int (*hold)(void* context);
  /* Returns when all copies are done, with an error if one has failed. */
  int (*wait)(void* context);
  /* Memory of the device, or NULL. With 0 `bytes` frees `memory`, which is NULL otherwise. */
  void* (*allocate)(void* context, void* memory, size_t bytes);
} perdure_device;

typedef struct perdure_array_options {
  unsigned flags; /* enum perdure_array_flags */
  void* buffer;   /* copy and log: the application's own buffer, whose contents stay when a new
                     pool restarts; default: Perdure allocates one of zeros, from 4 KiB on at a
                     page. INVALID unless the processor can read and write all of it, or it is
                     memory of a GPU (docs/gpu.md): device, managed or pinned. It stays
                     where it is until close, or until perdure_array_resize() says where it lies:
                     after free(), realloc() or munmap() every commit and restore is STATE. Log of
                     more than 16 KiB: one that begins at a page has whole pages, which hold nothing
                     else and are of one array; any other, as malloc() gives it, is compared, as if
                     PERDURE_COMPARE were said. */
  int ranks;      /* enum perdure_ranks; 0: its box counts */
  const perdure_device* device; /* copy and log: how `buffer` is reached, which it needs if there
                                   are elements; read in the call. NULL: it is the host's, or a
                                   GPU's. Arrays with the same functions and context share a
                                   device */
} perdure_array_options;

typedef struct perdure_pool_status {
  uint64_t version;           /* newest committed version */
  uint64_t commits;           /* since the pool was opened */
  uint64_t commit_ns;         /* time that all commits kept the application waiting */
  uint64_t commit_ns_last;    /* of the newest one */
  uint64_t committed_bytes;   /* copied or flushed by all commits */
  uint64_t restart_ns;        /* of perdure_restart */
  uint64_t model_ns;          /* time an emulated device would have added (virtual clock) */
  int survives_power_failure; /* 0: the pool survives the death of processes only */
  int fell_back;              /* 1: an older version was restored (PERDURE_ALLOW_OLDER) */
  int levels_under_way;       /* 1: a version is on its way to other levels, as this rank knows */
  unsigned old_ranks;         /* that made the pool: until the first commit perdure_read() reads
                                 what they had, if they are another number than now */
  unsigned lacking_snapshots; /* arrays on a GPU that had no room for a snapshot beside them: what
                                 stores to them waits for the transfer */
} perdure_pool_status;

/* Opens the pool in directory `path`, or makes it; what is above `path` must be there.
 * Collective. `options` may be NULL. BUSY at once if this process has the pool open.
 * Errors: BUSY, FOREIGN, RANKS (also if a pool that is to get another number of ranks has levels,
 * cached files or windows), DAMAGED, NEWER_FORMAT, NO_SPACE, IO, UNSUPPORTED. */
PERDURE_API int perdure_open(const char* path, const perdure_options* options, perdure_pool** pool);

/* Waits for an unfinished commit, then releases the pool, in any case. What was not committed is
 * not kept. Collective; but while a C++ exception unwinds, a rank leaves without waiting for the
 * others. If other ranks are in another call, that fails on them (INVALID), and all they can do
 * with the pool is close it. */
PERDURE_API int perdure_close(perdure_pool* pool);

/* Finds or makes the array `name` (UTF-8, 1 to 255 bytes) of a perdure_type and perdure_mode with
 * `dimensions` (1 to 8) extents in `shape`, row-major; an extent may be 0. Local: an array is this
 * rank's; others may lack it, or have one of its name in another shape and mode. All space is
 * allocated here (NO_SPACE). SHAPE when this rank's part of the pool holds the name with another
 * type, shape or mode. `shape` NULL, with `dimensions` 0: the extents that the pool has, which
 * perdure_arrays() tells (NOT_FOUND if it lacks the array). Contents are defined after
 * perdure_restart(). */
PERDURE_API int perdure_array_open(perdure_pool* pool, const char* name, int type,
                                   unsigned dimensions, const uint64_t* shape, int mode,
                                   const perdure_array_options* options, perdure_array** array);

/* Gives the array other extents, as many as it has, from the next version on; older versions keep
 * theirs. Elements stay in row-major order as far as there is room, new ones are zero. `buffer`:
 * where the application's own memory lies now, with the contents; NULL: Perdure's from now on, to
 * which they are copied. Pointers to the array change. Its box is forgotten. Local, in copy, log
 * and twin mode, after perdure_restart(). While a commit is under way it waits until the array is
 * saved; a twin array is STATE then. On an error all is as before: NO_SPACE, INVALID, SHAPE, STATE,
 * UNSUPPORTED. Space is kept for up to 1.6 times the size, so that most calls cost no more than a
 * note; it is free for others when no version needs it any more. */
PERDURE_API int perdure_array_resize(perdure_array* array, const uint64_t* shape, void* buffer);

/* The extents that the array has now: `dimensions` and `shape` (8 places) may be NULL. They change
 * with perdure_array_resize() and, where the memory is Perdure's, perdure_restore(). Local. */
PERDURE_API int perdure_array_shape(const perdure_array* array, unsigned* dimensions,
                                    uint64_t* shape);

/* Closes the array and drops it from the next version on; `array` is no handle any more. Its space
 * is free when no version has it. Local; waits until a commit that is under way has read it. */
PERDURE_API int perdure_array_remove(perdure_array* array);

/* An array of a pool. */
typedef struct perdure_array_info {
  char name[256];
  int type; /* enum perdure_type */
  int mode; /* enum perdure_mode */
  unsigned dimensions;
  uint64_t shape[8];
  uint64_t bytes; /* of its elements */
  int checksums;  /* 1: every block has one */
  int open;       /* 1: in this process */
} perdure_array_info;

/* Stores up to `capacity` of the arrays that this rank has in `version`, one of perdure_versions(),
 * and how many there are in *count. Version 0: the next one's; before perdure_restart(), those that
 * it will bring back. `arrays` may be NULL with capacity 0. Local. NOT_FOUND. */
PERDURE_API int perdure_arrays(const perdure_pool* pool, uint64_t version,
                               perdure_array_info* arrays, size_t capacity, size_t* count);

/* The extents that perdure_array_open() gives this rank with `shape` NULL, and `ranks` in its
 * options: `dimensions` and `shape` (8 places) may be NULL. Before the restart, to make room for
 * them. Local. NOT_FOUND; RANKS if another number of ranks made the pool and nothing is said. */
PERDURE_API int perdure_stored_shape(const perdure_pool* pool, const char* name, int ranks,
                                     unsigned* dimensions, uint64_t* shape);

/* As perdure_arrays(), of what old rank `old_rank` has in the version that is gone on from, if
 * another number of ranks made the pool. From the opening until the first commit, else STATE. */
PERDURE_API int perdure_old_arrays(const perdure_pool* pool, unsigned old_rank,
                                   perdure_array_info* arrays, size_t capacity, size_t* count);

/* Copies elements [first, first + count) of an array of old rank `old_rank` to `elements`, in row-
 * major order and of the type that the pool has; or of a scalar, whose elements are bytes if it has
 * no type. From the opening until the first commit: STATE after it, and where the number of ranks
 * is as before. Local; what is read is compared with its checksums. NOT_FOUND, INVALID, DAMAGED */
PERDURE_API int perdure_read(perdure_pool* pool, const char* name, unsigned old_rank,
                             uint64_t first, uint64_t count, void* elements);

/* Ties `bytes` (1 to 16384) bytes at `address` to the scalar `name`: every commit saves them,
 * perdure_restart() writes them. The name "iteration" (an integer of 4 or 8 bytes) is shown by
 * `perdure run`. Local. `address` must stay valid until close. */
PERDURE_API int perdure_scalar(perdure_pool* pool, const char* name, void* address, size_t bytes);

/* The same of one or more of a perdure_type, so that `perdure pool show` prints what it is; 0: no
 * type is known. SHAPE if the pool has the scalar with another type; all integers are alike. */
PERDURE_API int perdure_scalar_typed(perdure_pool* pool, const char* name, int type, void* address,
                                     size_t bytes);

/* In C11 perdure_scalar() tells the type that `address` points to, where it is one of these. */
#if !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define PERDURE_TYPE_OF(address)                                           \
  _Generic((address),                                                      \
      signed char*: PERDURE_INT8,                                          \
      short*: PERDURE_INT16,                                               \
      unsigned short*: PERDURE_UINT16,                                     \
      int*: PERDURE_INT32,                                                 \
      unsigned*: PERDURE_UINT32,                                           \
      long*: sizeof(long) == 8 ? PERDURE_INT64 : PERDURE_INT32,            \
      unsigned long*: sizeof(long) == 8 ? PERDURE_UINT64 : PERDURE_UINT32, \
      long long*: PERDURE_INT64,                                           \
      unsigned long long*: PERDURE_UINT64,                                 \
      float*: PERDURE_FLOAT,                                               \
      double*: PERDURE_DOUBLE,                                             \
      float _Complex*: PERDURE_COMPLEX_FLOAT,                              \
      double _Complex*: PERDURE_COMPLEX_DOUBLE,                            \
      _Bool*: PERDURE_BOOL,                                                \
      char*: PERDURE_TEXT,                                                 \
      default: 0)
#define perdure_scalar(pool, name, address, bytes) \
  perdure_scalar_typed(pool, name, PERDURE_TYPE_OF(address), address, bytes)
#endif

/* Names a text file, or another that only grows, which this rank writes: each version notes how
 * long it is, and perdure_restart() and perdure_restore() cut it back to that, so that no line
 * stands twice and none is missing. Call it before the restart, or right after it, in every run,
 * and open the file to append ("a", O_APPEND), or after the restart. It may be missing until then.
 * A commit flushes `stream`, which stays open until close, or, if that is NULL, all streams of C
 * (fflush), which waits for a thread that reads from one; what is written without a buffer needs
 * neither. Again, of the same path: with another stream. A version of before the first call has the
 * length that the file had then. The path is what a file is known by; a relative one is looked up
 * in the working directory of the call. Local; no other rank or process may name the file (BUSY).
 * Errors, of the restart and restore too, which cut nothing then: NOT_FOUND (it is gone), DAMAGED
 * (it is shorter, or another one), STATE (a descriptor without O_APPEND is beyond its new end),
 * FOREIGN (a link, or another user's), NO_SPACE, IO, INVALID. */
PERDURE_API int perdure_file(perdure_pool* pool, const char* path, FILE* stream);

/* Gives every open array and scalar the contents of the newest version that all ranks
 * hold, and stores its number in *version; 0 means a new pool: arrays are zero, but the buffers
 * that the application gave and its scalars stay as they were. Collective; once, after the arrays
 * and scalars are opened and before the first commit.
 * If another number of ranks made the pool (PERDURE_ANY_RANKS), all of its arrays must be open on
 * some rank, and scalars that are open here be the same on all old ranks (RANKS; SHAPE if shapes do
 * not fit). Where old boxes overlap, the lowest rank's cells count; those that no old box had are
 * zero, which a line on stderr says. The pool stays that of the old ranks until the first commit
 * has returned; until then there is no perdure_restore() (STATE). */
PERDURE_API int perdure_restart(perdure_pool* pool, uint64_t* version);

/* A version that the pool keeps. */
typedef struct perdure_version_info {
  uint64_t version;
  uint64_t parent;       /* the version that it was made from: version - 1, or an older one that had
                            been restored */
  uint64_t committed_ns; /* since 1970 */
  int abandoned;         /* 1: the newest was not made from it, but from an older one */
} perdure_version_info;

/* Stores up to `capacity` of the versions that all ranks hold, newest first, and how many there are
 * in *count. Before restart or later. `versions` may be NULL with capacity 0. Local. */
PERDURE_API int perdure_versions(const perdure_pool* pool, perdure_version_info* versions,
                                 size_t capacity, size_t* count);

/* As perdure_restart, of `version`, and in its place; or at any time after it. The next commit goes
 * on from there under a new number; newer versions are kept as abandoned until their space
 * is needed, and can be restored as well. Arrays and scalars that `version` lacks: arrays become
 * zero, scalars stay. Flush arrays stay. Arrays have the extents that they have in `version`;
 * pointers to these, and to twin arrays, change. Collective. Errors that leave all as it was:
 * NOT_FOUND, DAMAGED, SHAPE (an open array is of another type or mode there, or of other extents
 * and its memory is the application's: perdure_array_resize() it first). */
PERDURE_API int perdure_restore(perdure_pool* pool, uint64_t version);

/* Frees the space of `version`, which can't be the newest. Collective. NOT_FOUND, STATE. */
PERDURE_API int perdure_delete_version(perdure_pool* pool, uint64_t version);

/* Where the application writes: the buffer (copy, log) or the working copy (twin). Changes with
 * every commit and restore for twin, else only with the extents: a pointer of before then leads
 * into a version (PERDURE_CHECK=1 ends a program that stores there). NULL before
 * perdure_restart(). */
PERDURE_API void* perdure_working(perdure_array* array);

/* Twin: the last committed copy, read-only. Copy, log: the buffer. NULL before restart. */
PERDURE_API const void* perdure_consistent(const perdure_array* array);

/* Log mode with PERDURE_MARKS: says that elements [first, first + count) were or will be changed
 * before the next commit. Local. */
PERDURE_API int perdure_mark(perdure_array* array, uint64_t first, uint64_t count);

/* Twin: stores `count` elements at element `first` of the working copy past the cache, so that the
 * commit need not flush them. Until the commit, change these elements by this call alone: other
 * stores to them might not be on the medium. For loops that produce their result row by row. Local.
 * STATE between perdure_commit_begin() and perdure_commit_wait().
 * After perdure_stream() `elements` may be memory of its GPU: what the stream leaves there is
 * transferred while the host goes on, the stream goes on after that, and a commit waits for it. If
 * they are in pinned or managed memory, which the processor can store to, they have been read when
 * the call returns. Calls for the same elements store in their order. perdure_before_write() waits
 * for the transfers: call it before the processor reads them, or stores to the copy by itself. */
PERDURE_API int perdure_write(perdure_array* array, uint64_t first, uint64_t count,
                              const void* elements);

/* Says where this rank's array lies in one that all ranks have together: its element 0 is element
 * `first` of an array of `global_shape`; both have as many extents as the array, and ranks' parts
 * may overlap. Versions note it: `perdure pool export` and perdure.read() of Python put the parts
 * together, and another number of ranks can go on with them (PERDURE_ANY_RANKS). Say it at every
 * start, before the restart. Local. INVALID if the array reaches beyond. */
PERDURE_API int perdure_array_box(perdure_array* array, const uint64_t* global_shape,
                                  const uint64_t* first);

/* Makes the contents of all arrays and scalars durable as one new version on all ranks, and stores
 * its number in *version (may be NULL). Collective. When it has returned on any rank, no crash
 * loses that version. On failure the previous version stays the newest, the arrays keep their
 * contents, and the caller may commit again. */
PERDURE_API int perdure_commit(perdure_pool* pool, uint64_t* version);

/* A commit in two steps: another thread copies while the application computes. The application must
 * not write to an array until perdure_before_write(array), or commit_wait, has returned; to a twin
 * array only after commit_wait (STATE), as it is committed where it is. Scalars are saved by
 * commit_begin. commit_wait is collective and makes the version durable; commit_begin
 * and commit wait for an earlier one themselves. */
PERDURE_API int perdure_commit_begin(perdure_pool* pool);
PERDURE_API int perdure_before_write(perdure_array* array);
PERDURE_API int perdure_commit_wait(perdure_pool* pool, uint64_t* version);

enum perdure_stream_kind {
  PERDURE_STREAM_NONE = 0,
  PERDURE_STREAM_CUDA = 1, /* a CUstream or cudaStream_t; NULL is the default stream */
  PERDURE_STREAM_HIP = 2   /* a hipStream_t; as before */
};

/* Names the stream that works on arrays in memory of a GPU: from now on a commit takes what it had
 * been asked for when perdure_commit() or perdure_commit_begin() was called, and the stream goes on
 * as soon as the commit has a snapshot of it; in log mode, the pages that changed. The host doesn't
 * wait for that in commit_begin, and stores by the stream need no perdure_before_write(). Without a
 * stream (PERDURE_STREAM_NONE, NULL) a commit waits for all that the program has asked of the GPU.
 * A commit while the stream is captured into a graph fails (STATE). Local; the stream must live as
 * long as it is named. INVALID: another kind. UNSUPPORTED: the process has no such driver. */
PERDURE_API int perdure_stream(perdure_pool* pool, int kind, void* stream);

enum perdure_due {
  PERDURE_NOT_DUE = 0,
  PERDURE_DUE = 1,
  PERDURE_DUE_LAST = 2 /* commit, then leave the loop, close the pool and end with 0 */
};

/* Whether a version is due: *due becomes PERDURE_DUE if the interval of the plan
 * $PERDURE_ENERGY_PLAN (`perdure energy plan`) has passed since the last commit or the opening,
 * else PERDURE_NOT_DUE; without a plan always PERDURE_DUE. PERDURE_DUE_LAST, from then on, if
 * `perdure run` has received SIGUSR1, as before the end of the job's time. Rank 0's clock decides.
 * The plan's upper levels get their copies from the commits themselves. Collective. */
PERDURE_API int perdure_commit_due(perdure_pool* pool, int* due);

/* Waits until every version that is on its way to other levels (docs/levels.md) has arrived: on
 * other nodes, and whole in the directory of the drain. Stores the newest one that has come to all
 * levels since the pool was opened in *version (may be NULL); 0: none has, or there are no levels.
 * BUSY: not within their patience, and it goes on. IO and others: a level failed, which is said
 * once; the pool is as good as before. Collective. */
PERDURE_API int perdure_levels_wait(perdure_pool* pool, uint64_t* version);

PERDURE_API int perdure_status(const perdure_pool* pool, perdure_pool_status* status);

/* A fixed text for a code; the sentence of this thread's last failure ("" if none). */
PERDURE_API const char* perdure_strerror(int code);
PERDURE_API const char* perdure_last_error(void);
PERDURE_API const char* perdure_library_version(void); /* "0.1.0" */

#ifdef __cplusplus
}
#endif
#endif
