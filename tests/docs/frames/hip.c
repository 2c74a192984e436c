// SPDX-License-Identifier: BSD-3-Clause
// What docs/devices.md leaves out, and as much of HIP as it has.
#include <perdure/perdure.h>
#include <stddef.h>

typedef struct ihipStream_t* hipStream_t;
typedef struct ihipEvent_t* hipEvent_t;
typedef enum { hipSuccess } hipError_t;
enum hipMemcpyKind { hipMemcpyDefault = 4 };
hipError_t hipMemcpyAsync(void* to, const void* from, size_t bytes, enum hipMemcpyKind kind,
                          hipStream_t stream);
hipError_t hipEventRecord(hipEvent_t event, hipStream_t stream);
hipError_t hipStreamWaitEvent(hipStream_t stream, hipEvent_t event, unsigned flags);
hipError_t hipStreamSynchronize(hipStream_t stream);
hipError_t hipMalloc(void** made, size_t bytes);
hipError_t hipFree(void* memory);

// snippet

perdure_device device(queues* q);
perdure_device device(queues* q) {
  return (perdure_device){.context = q,
                          .copy = copy,
                          .follow = follow,
                          .hold = hold,
                          .wait = wait,
                          .allocate = allocate};
}
