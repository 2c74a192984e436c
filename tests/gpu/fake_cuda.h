/* SPDX-License-Identifier: BSD-3-Clause
 *
 * What tests tell the CUDA driver without a GPU (fake_cuda.cpp), and ask it, beyond the driver's
 * own calls. A process that cannot call these sets the environment before its first call:
 *
 *   FAKE_CUDA_SEED          of the delays and orders that are drawn; it is printed
 *   FAKE_CUDA_QUIET=1       it is not
 *   FAKE_CUDA_DELAY_US      the longest delay before a piece of work begins (200)
 *   FAKE_CUDA_DEVICES       how many there are (1)
 *   FAKE_CUDA_BYTES         memory of each (1 GiB)
 *   FAKE_CUDA_HOST_TABLES=1 devices read the host's page tables, as a GH200
 *   FAKE_CUDA_NO_REGISTERING=1  each registration is refused
 *   FAKE_CUDA_NULL_CONTEXT=1    a pointer has no context, as memory of a pool
 *   FAKE_CUDA_OTHER_ADDRESSES=1  kernels reach registered memory at another address, which
 *                           nobody says
 *   FAKE_CUDA_FAIL_AT=n     the n-th call fails; with FAKE_CUDA_FAIL_CALL=name the n-th of these
 *   FAKE_CUDA_FAIL_CODE     with this code (2 where memory is asked for, else 999)
 *   FAKE_CUDA_FAIL_ON=1     and so do all that follow
 *   FAKE_CUDA_FAIL_STICKY=1 and the context is lost, as after an illegal access (700)
 *   FAKE_CUDA_KILL_AT=n     SIGKILL as the n-th call begins
 *   FAKE_CUDA_KILL_COPY=n   SIGKILL in the middle of the n-th copy from or to a device
 *   FAKE_CUDA_LOG=file      a line for each call is appended: process, number, name, code
 *
 * Threads: any. None of these is counted as a call. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How many calls there were, of this name or, with NULL, of all. */
uint64_t fake_cuda_calls(const char* name);
/* The at-th call from now on (1 is the next one) fails with `code`, of this name if that is not
 * NULL; `sticky`: and the current context is lost. 0: none fails. */
void fake_cuda_fail(const char* name, uint64_t at, int code, int sticky);
/* The context of a device fails, as if a kernel of the program had made an illegal access. */
void fake_cuda_break(int device, int code);
/* A kernel of that name is launched and does nothing, without an error; NULL: none is. */
void fake_cuda_skip(const char* kernel);
void fake_cuda_set_bytes(uint64_t bytes);
void fake_cuda_set_delay_us(unsigned delay_us_max);
void fake_cuda_set_no_registering(int on);
void fake_cuda_set_null_context(int on);
void fake_cuda_set_other_addresses(int on);
/* What is not given back yet. */
uint64_t fake_cuda_device_bytes(void);
uint64_t fake_cuda_registrations(void);
uint64_t fake_cuda_registered_bytes(void);
uint64_t fake_cuda_streams(void);
uint64_t fake_cuda_events(void);
/* Memory of a device at `pointer` as the test may look at it, at no time's order; NULL: none is
 * there. */
void* fake_cuda_see(uint64_t pointer);
/* Every stream stops before its next piece of work until fake_cuda_go_on(). What waits, waits. */
void fake_cuda_hold(void);
void fake_cuda_go_on(void);

#ifdef __cplusplus
}
#endif
