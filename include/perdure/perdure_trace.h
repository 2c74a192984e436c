/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_trace.h: regions of interest in a memory trace, and iterations for `perdure ipv record`.
 *
 *   perdure_trace_begin("solve");
 *   for (step = 0; step < 5; ++step) conj_grad(...);
 *   perdure_trace_end();
 *
 * Link with -lperdure_trace_rt (perdure-clang --trace and the other wrappers do). Without the
 * environment variable PERDURE_TRACE both calls do nothing. With region=marked in it, only what
 * happens inside of regions is stored; the CPU cache in front of the memory goes on outside
 * of them, so that a region begins with a warm cache and holds the same accesses either way.
 *
 * Threads: call them where no other thread of the process runs recorded code: a call out of a
 * parallel region would put accesses of the other threads on either side. Regions neither nest
 * nor overlap; a call that would make them is ignored, and the recorder says so on stderr. A
 * region that is open when the program ends, ends there.
 */
#ifndef PERDURE_PERDURE_TRACE_H
#define PERDURE_PERDURE_TRACE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `name` has 1 to 255 bytes; several regions may have the same. */
void perdure_trace_begin(const char* name);
void perdure_trace_end(void);

/* 1 if this process records a trace, else 0. */
int perdure_trace_active(void);

/* For `perdure ipv record` (docs/ipv_check.md): an iteration of the main loop begins; they count
 * from 1. perdure_trace_end() ends the last one. The function is there only in a program that
 * records, so that no other one needs a library for it:
 *
 *   if (perdure_trace_iteration) perdure_trace_iteration(step);
 */
#if defined(__GNUC__)
__attribute__((weak))
#endif
void perdure_trace_iteration(uint64_t iteration);

#ifdef __cplusplus
}
#endif

#endif
