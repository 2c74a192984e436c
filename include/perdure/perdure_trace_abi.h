/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_trace_abi.h: what code that was instrumented by the compiler pass calls. Programs do not
 * use it; it is public because instrumented objects depend on it.
 *
 * Each thread has a cache, whose first way the instrumented code looks at. An access of `bytes`
 * bytes at `a` is a hit, and changes nothing, if all its bytes are in one line and
 *
 *   line  = a >> PERDURE_TRACE_LINE_SHIFT
 *   entry = entries[line & set_mask]
 *   (entry ^ (line << 1 | is_write)) <= (is_write ? write_slack : read_slack)
 *
 * as an entry is a line and, in bit 0, whether it is dirty. All else goes to one of the functions.
 * The slack says whether the dirty bit counts; 2^64 - 1 makes every access a hit: no trace is
 * recorded. A thread that has not begun has no entries; its first instrumented function calls
 * perdure_trace_thread_start().
 *
 * On x86-64 perdure_trace_read and perdure_trace_write preserve all general registers but r11
 * (LLVM's preserve_mostcc). Everything here may be called at any moment of a process, by any
 * thread, and in signal handlers.
 */
#ifndef PERDURE_PERDURE_TRACE_ABI_H
#define PERDURE_PERDURE_TRACE_ABI_H

#include <stdint.h>

#define PERDURE_TRACE_LINE_SHIFT 6

#ifdef __cplusplus
extern "C" {
#define PERDURE_TRACE_THREAD_LOCAL __thread
#else
#define PERDURE_TRACE_THREAD_LOCAL _Thread_local
#endif

struct perdure_trace_cache {
  const uint64_t* entries;
  uint64_t set_mask;
  uint64_t read_slack;
  uint64_t write_slack;
};

extern PERDURE_TRACE_THREAD_LOCAL struct perdure_trace_cache perdure_trace_cache
    __attribute__((tls_model("initial-exec")));

/* Afterwards this thread's perdure_trace_cache has entries. */
void perdure_trace_thread_start(void);

/* An access that was not found to be a hit; of 0 bytes: none. */
void perdure_trace_read(uint64_t address, uint64_t bytes);
void perdure_trace_write(uint64_t address, uint64_t bytes);

/* Lanes of a masked access of consecutive elements: bit i of `lanes` is element i. */
void perdure_trace_read_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes);
void perdure_trace_write_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes);

/* memcpy and memmove: reads and writes take turns, a line at a time. */
void perdure_trace_copy(uint64_t to, uint64_t from, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
