/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_ipv_abi.h: what code calls that perdure-clang --ipv transformed, and what a program may
 * call that places the hooks by hand. All of them do nothing for memory that is no object's, and
 * before perdure_ipv_restart().
 *
 * A nest of loops that overwrites a box of an object, rows at regular distances, says so in front
 * of all of them:
 *
 *     const struct perdure_ipv_box box = {
 *         u, 2, {columns * sizeof *u, rows}, {1, pitch * sizeof *u}, &others, 1};
 *     const struct perdure_ipv_answer by = perdure_ipv_box_begin(&box);
 *     for (j = 0; j < rows; j++)
 *       for (i = 0; i < columns; i++)
 *         u[j * pitch + i] = f(AT(by.load, u[j * pitch + i]));
 *     if (by.how != PERDURE_IPV_NO_BOX) perdure_ipv_box_end(&box, 0);
 *
 * The answer may always be PERDURE_IPV_NO_BOX: then nothing was announced, and the nest runs as it
 * was. It is that unless nobody but the calling thread can look at the object while the nest runs
 * (docs/ipv_compiler.md, Onlookers).
 *
 * Obligations of the code that calls them, from the box's begin to its end
 *   abi.R1  Every byte of the box is stored to.
 *   abi.R2  A load of a byte of the box that comes before the store to it has `load` added to its
 *       address; the stores, and a load after one, do not.
 *   abi.R3  Nothing else loads from or stores to the object. What else the nest may touch and is
 *       not known to be no object's lies in `others`; box_begin compares them with the object.
 *   abi.R4  box_end is called on every way out, before the object is accessed in another way, with
 *       the same box; not where the answer was PERDURE_IPV_NO_BOX.
 *   abi.R5  `past_cache` says that all stores to cache lines (64 bytes) that lie whole in one row
 *       of counts[0] bytes were non-temporal ones, so that a fence makes them durable. It may be 1
 *       only where `how` is PERDURE_IPV_BOX_PAST_CACHE, and need not be.
 * Outside of boxes loads and stores are ordinary ones, and no hook is needed: the runtime notices
 * them by the write protection of the committed copy. perdure_ipv_plain() spares it a fault.
 */
#ifndef PERDURE_PERDURE_IPV_ABI_H
#define PERDURE_PERDURE_IPV_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "perdure/perdure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Addresses: the first byte, and the one after the last. */
struct perdure_ipv_range {
  uintptr_t low;
  uintptr_t high;
};

/* counts and strides in bytes, innermost first: the innermost is bytes of a row, counts[0] of them,
 * and strides[0] is 1. Strides are not negative. */
struct perdure_ipv_box {
  void* first;
  uint64_t dimensions; /* 1 to 4 */
  size_t counts[4];
  size_t strides[4];
  const struct perdure_ipv_range* others;
  uint64_t other_count;
};

enum perdure_ipv_how {
  PERDURE_IPV_NO_BOX = 0,
  PERDURE_IPV_BOX = 1,
  PERDURE_IPV_BOX_PAST_CACHE = 2 /* nobody will store to it again in this iteration, as far as is
                                    known, and non-temporal stores are worth it */
};

/* Returned in two registers. */
struct perdure_ipv_answer {
  ptrdiff_t load; /* difference in bytes */
  ptrdiff_t how;  /* enum perdure_ipv_how */
};

/* `how` is never PERDURE_IPV_BOX_PAST_CACHE where rows are shorter. A compiler may rely on that. */
#define PERDURE_IPV_PAST_CACHE_BYTES_MIN 512

PERDURE_API struct perdure_ipv_answer perdure_ipv_box_begin(const struct perdure_ipv_box* box);
PERDURE_API void perdure_ipv_box_end(const struct perdure_ipv_box* box, int past_cache);

/* Stores to the object of `address` follow that no box announces. */
PERDURE_API void perdure_ipv_plain(void* address);

/* Objects that take boxes lie in [perdure_ipv_low, perdure_ipv_high); nothing need be called for
 * other addresses. Both are 0 while there are none; persistence points may change them. */
PERDURE_API extern uintptr_t perdure_ipv_low;
PERDURE_API extern uintptr_t perdure_ipv_high;

/* A box of fewer bytes is not worth the questions that box_begin asks the kernel. Code from
 * perdure-clang does not announce it. */
PERDURE_API extern uintptr_t perdure_ipv_box_bytes_min;

/* A module in which perdure-clang --ipv announces boxes has a note: the mark, 32 digits that name
 * what the module was made of, whether a run under `perdure ipv check` found no fault in a build
 * of the same, and the source file, up to a NUL. `perdure ipv check --for FILE` stores the word
 * that it was checked into FILE. The module tells its note when it is loaded; any thread. */
struct perdure_ipv_build {
  char mark[20];
  char hash[32];
  char word[13];
  char source[1];
};
#define PERDURE_IPV_BUILD_MARK "PERDURE-IPV-BUILD-1 "
#define PERDURE_IPV_NOT_CHECKED " not-checked "
#define PERDURE_IPV_CHECKED " checked     "
PERDURE_API void perdure_ipv_build_is(const struct perdure_ipv_build* build);

#ifdef __cplusplus
}
#endif
#endif
