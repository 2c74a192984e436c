// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of the CUDA driver that programs of the bench and of tests make, found when they run:
// they are built where there is no CUDA. BENCH_CUDA_DRIVER names another library than libcuda.so.1.
#pragma once

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t CudaAddress;
typedef struct CudaOpaque* CudaStream;
typedef struct CudaOpaque* CudaEvent;
typedef struct CudaOpaque* CudaContext;

enum { CUDA_STREAM_OF_ITS_OWN = 1, CUDA_EVENT_WITHOUT_TIMES = 2 };

#define CUDA_CALLS(X)                                                                     \
  X(initialise, cuInit, (unsigned))                                                       \
  X(device_name, cuDeviceGetName, (char*, int, int))                                      \
  X(retain, cuDevicePrimaryCtxRetain, (CudaContext*, int))                                \
  X(set_current, cuCtxSetCurrent, (CudaContext))                                          \
  X(allocate, cuMemAlloc_v2, (CudaAddress*, size_t))                                      \
  X(release, cuMemFree_v2, (CudaAddress))                                                 \
  X(host_allocate, cuMemHostAlloc, (void**, size_t, unsigned))                            \
  X(host_free, cuMemFreeHost, (void*))                                                    \
  X(copy_within, cuMemcpyDtoDAsync_v2, (CudaAddress, CudaAddress, size_t, CudaStream))    \
  X(copy_to_host, cuMemcpyDtoHAsync_v2, (void*, CudaAddress, size_t, CudaStream))         \
  X(copy_from_host, cuMemcpyHtoDAsync_v2, (CudaAddress, const void*, size_t, CudaStream)) \
  X(fill, cuMemsetD8Async, (CudaAddress, unsigned char, size_t, CudaStream))              \
  X(stream_create, cuStreamCreateWithPriority, (CudaStream*, unsigned, int))              \
  X(stream_destroy, cuStreamDestroy_v2, (CudaStream))                                     \
  X(stream_synchronise, cuStreamSynchronize, (CudaStream))                                \
  X(event_create, cuEventCreate, (CudaEvent*, unsigned))                                  \
  X(event_destroy, cuEventDestroy_v2, (CudaEvent))                                        \
  X(event_record, cuEventRecord, (CudaEvent, CudaStream))                                 \
  X(event_synchronise, cuEventSynchronize, (CudaEvent))

static struct {
#define X(name, symbol, arguments) int(*name) arguments;  // NOLINT(bugprone-macro-parentheses)
  CUDA_CALLS(X)
#undef X
} cu;

// An address of a device as the pointer that interfaces take; only the driver follows it.
static inline void* pointer_to(CudaAddress at) {
  return (void*)(uintptr_t)at;  // NOLINT(performance-no-int-to-ptr)
}

static inline void check_cuda(int code, const char* call) {
  if (code == 0) return;
  fprintf(stderr, "bench_gpu: %s: CUDA's error %d\n", call, code);
  exit(1);
}

static inline void no_gpu(const char* why) {
  fprintf(stderr, "bench_gpu: there is no GPU here: %s\n", why);
  exit(3);
}

// Loads the driver and makes the context of the first device current; prints "driver NAME", where
// the fake one of the tests says that it is that.
static inline void open_driver(void) {
  const char* const named = getenv("BENCH_CUDA_DRIVER");
  void* const library =
      dlopen(named != NULL && *named != 0 ? named : "libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == NULL) no_gpu(dlerror());
#define X(name, symbol, arguments)                           \
  {                                                          \
    void* const found = dlsym(library, #symbol);             \
    if (found == NULL) no_gpu("the driver has no " #symbol); \
    memcpy(&cu.name, &found, sizeof found);                  \
  }
  CUDA_CALLS(X)
#undef X
  CudaContext context;
  char name[128] = "";
  if (cu.initialise(0) != 0) no_gpu("the driver finds no device");
  check_cuda(cu.retain(&context, 0), "cuDevicePrimaryCtxRetain");
  check_cuda(cu.set_current(context), "cuCtxSetCurrent");
  check_cuda(cu.device_name(name, sizeof name, 0), "cuDeviceGetName");
  printf("driver %s%s\n", dlsym(library, "fake_cuda_calls") != NULL ? "fake: " : "", name);
  fflush(stdout);
}
