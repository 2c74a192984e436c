/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_ipv_abi.h: what code calls that perdure-clang --ipv transformed, and what a program may
 * call that places the hooks by hand. All of them do nothing for memory that is no object's, and
 * before perdure_ipv_restart().
 *
 * A nest of loops that overwrites rows of an object:
 *
 *     for (j = 0; j < rows; j++) {
 *       struct perdure_ipv_row row = perdure_ipv_row_begin(&u[j * pitch], columns * sizeof *u);
 *       for (i = 0; i < columns; i++)
 *         u[j * pitch + i] = f(AT(row.load, u[j * pitch + i]));
 *       perdure_ipv_row_end(&u[j * pitch], columns * sizeof *u);
 *     }
 *     perdure_ipv_nest_end(u);
 *
 * Obligations of the code that calls them, from the first row of a nest to nest_end
 *   R1  Between row_begin and row_end every byte of the row is stored to.
 *   R2  A load of a byte of the row that comes before the store to it has `load` added to its
 *       address; the stores, and a load after one, do not.
 *   R3  Nothing else loads from or stores to the object. Other rows may follow, in any order, and
 *       overlap; rows that are open at the same time are disjoint.
 *   R4  nest_end is called on every way out, before the object is accessed in another way.
 *   R5  row_end_past_cache, instead of row_end, says that all stores to cache lines (64 bytes) that
 *       lie in the row whole were non-temporal ones, so that a fence makes them durable. It may be
 *       called only where row_begin set past_cache, and need not be.
 *   R6  A box is announced and ended by the thread that makes the calls; between the two, it and
 *       others may store to parts of its rows, each byte by one thread, which also loads it. Whose
 *       stores passed the cache call box_part for each run of bytes that they stored, and box_fence
 *       after the last one. box_end_past_cache, instead of box_end, says that all stores to the box
 *       were of that kind; as R5, it may be called only where box_begin set past_cache.
 * Between nests loads and stores are ordinary ones, and no hook is needed: the runtime notices them
 * by the write protection of the committed copy. perdure_ipv_plain() spares it a fault.
 */
#ifndef PERDURE_PERDURE_IPV_ABI_H
#define PERDURE_PERDURE_IPV_ABI_H

#include <stddef.h>
#include <stdint.h>

#include "perdure/perdure.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Returned in two registers. */
struct perdure_ipv_row {
  ptrdiff_t load;       /* difference in bytes */
  ptrdiff_t past_cache; /* 1: nobody will store to the row again in this iteration, as far as is
                           known, and non-temporal stores are worth it; else 0 */
};

/* Of rows that are shorter past_cache is 0. A compiler may rely on that. */
#define PERDURE_IPV_PAST_CACHE_BYTES_MIN 512

PERDURE_API struct perdure_ipv_row perdure_ipv_row_begin(void* first, size_t bytes);
PERDURE_API void perdure_ipv_row_end(void* first, size_t bytes);
PERDURE_API void perdure_ipv_row_end_past_cache(void* first, size_t bytes);

/* The same for a whole box of rows at once: `dimensions` (1 to 4) counts and strides in bytes,
 * innermost first; the innermost is bytes: counts[0] bytes, strides[0] is 1. Strides are not
 * negative. box_end takes the same. */
PERDURE_API struct perdure_ipv_row perdure_ipv_box_begin(void* first, unsigned dimensions,
                                                         const size_t* counts,
                                                         const size_t* strides);
PERDURE_API void perdure_ipv_box_end(void* first, unsigned dimensions, const size_t* counts,
                                     const size_t* strides);
PERDURE_API void perdure_ipv_box_end_past_cache(void* first, unsigned dimensions,
                                                const size_t* counts, const size_t* strides);
PERDURE_API void perdure_ipv_box_part(const void* first, size_t bytes);
PERDURE_API void perdure_ipv_box_fence(void);

/* `address`: any of the object's. */
PERDURE_API void perdure_ipv_nest_end(void* address);

/* Stores to the object of `address` follow that no row announces. */
PERDURE_API void perdure_ipv_plain(void* address);

/* The object that holds `address`, as its first byte and the one after its last; both are 0 if
 * there is none, or if the caller can't announce rows in it: it is not the thread that opened the
 * objects, or it is in a parallel region of OpenMP. Valid until the next persistence point. Rows
 * that code from perdure-clang announces lie in one such range. */
struct perdure_ipv_range {
  uintptr_t low;
  uintptr_t high;
};
PERDURE_API struct perdure_ipv_range perdure_ipv_extent(const void* address);

/* Objects that take rows lie in [perdure_ipv_low, perdure_ipv_high); nothing need be called for
 * other addresses. Both are 0 while there are none; persistence points may change them. */
PERDURE_API extern uintptr_t perdure_ipv_low;
PERDURE_API extern uintptr_t perdure_ipv_high;

/* How many bytes ahead a loop that stores past the cache asks for what it will load. Which distance
 * helps is the processor's matter; it does not change before the program ends. */
PERDURE_API extern uintptr_t perdure_ipv_fetch_ahead;

#ifdef __cplusplus
}
#endif
#endif
