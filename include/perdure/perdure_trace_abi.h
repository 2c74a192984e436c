/* SPDX-License-Identifier: BSD-3-Clause
 *
 * perdure_trace_abi.h: what code that was instrumented by the compiler pass calls. Programs do not
 * use it; it is public because instrumented objects depend on it.
 *
 * Each thread has a cache, whose first way the instrumented code looks at. An access of `bytes`
 * bytes at `a` is a hit, and changes nothing, if all its bytes are in one line and
 *
 *   entry = entries[is_write][(a >> PERDURE_TRACE_LINE_SHIFT) & set_mask]
 *   (entry ^ a) <= slack
 *
 * with set_mask = byte_mask / 8, as an entry is the address of a line, and the slack ignores where
 * in the line `a` is. Where a write makes a line dirty, the entries of writes are other ones: the
 * lines that are dirty already. A slack of 2^64 - 1 makes every access a hit: no trace is recorded.
 * All else goes to one of the functions. A thread that has not begun has no entries; its first
 * instrumented function calls perdure_trace_thread_start().
 *
 * On x86-64 perdure_trace_read, _write, _read_miss and _write_miss preserve all general registers
 * but r11 (LLVM's preserve_mostcc). Everything here may be called at any moment of a process, by
 * any thread, and in signal handlers.
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

struct perdure_trace_ways {
  uint64_t* entries[2]; /* of reads, of writes */
  uint64_t byte_mask;   /* of the offset of an entry */
  uint64_t slack;
};

extern PERDURE_TRACE_THREAD_LOCAL struct perdure_trace_ways perdure_trace_ways
    __attribute__((tls_model("initial-exec")));

/* Afterwards this thread's perdure_trace_ways has entries. (Objects that were instrumented when it
 * was perdure_trace_cache, with other entries, are refused by the linker.) */
void perdure_trace_thread_start(void);

/* An access that was not found to be a hit; of 0 bytes: none. */
void perdure_trace_read(uint64_t address, uint64_t bytes);
void perdure_trace_write(uint64_t address, uint64_t bytes);

/* The same for an access in one line, for callers that have looked at its `entry` already. */
void perdure_trace_read_miss(uint64_t* entry, uint64_t address);
void perdure_trace_write_miss(uint64_t* entry, uint64_t address);

/* Lanes of a masked access of consecutive elements: bit i of `lanes` is element i. */
void perdure_trace_read_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes);
void perdure_trace_write_lanes(uint64_t address, uint64_t element_bytes, uint64_t lanes);

/* memcpy and memmove: reads and writes take turns, a line at a time. */
void perdure_trace_copy(uint64_t to, uint64_t from, uint64_t bytes);

#ifdef __cplusplus
}
#endif

#endif
