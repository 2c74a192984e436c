// SPDX-License-Identifier: BSD-3-Clause
/* cache_model.h: the calls that inform the model: accesses of the program, copies and flushes of
 * the runtime, and which file an address shows. hooks.cpp says what it makes of them. They may
 * be called at any moment, by any thread; those of threads that are not simulated do nothing.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* By the program. */
void perdure_cache_model_loaded(uint64_t address, uint64_t bytes);
void perdure_cache_model_stored(uint64_t address, uint64_t bytes);
/* memcpy(), unless instrumented code has just announced the same one. */
void perdure_cache_model_copied(const void* to, const void* from, size_t bytes);
void perdure_cache_model_read(const void* address, size_t bytes);
/* By copies and stores past the caches, which the lines leave. */
void perdure_cache_model_stored_past(const void* address, size_t bytes);
/* By an instruction, and so written back; whether the lines left is a setting of the model. */
void perdure_cache_model_flushed(const void* address, size_t bytes);
/* mmap() and munmap() that succeeded. */
void perdure_cache_model_mapped(const void* address, size_t bytes, int flags, int fd,
                                uint64_t offset);
void perdure_cache_model_unmapped(const void* address, size_t bytes);

#ifdef __cplusplus
}
#endif
