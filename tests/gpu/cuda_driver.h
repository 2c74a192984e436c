/* SPDX-License-Identifier: BSD-3-Clause
 *
 * The calls of the CUDA driver that the fake has, for programs that are linked with it. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint64_t CudaPointer;
typedef struct CudaContext* CudaContextHandle;
typedef struct CudaStream* CudaStreamHandle;
typedef struct CudaEvent* CudaEventHandle;
typedef struct CudaModule* CudaModuleHandle;
typedef struct CudaFunction* CudaFunctionHandle;
typedef struct CudaGraph* CudaGraphHandle;

/* Of CUresult, and of what the calls take. */
enum {
  CUDA_OK = 0,
  CUDA_INVALID_VALUE = 1,
  CUDA_OUT_OF_MEMORY = 2,
  CUDA_NOT_INITIALISED = 3,
  CUDA_NO_DEVICE = 100,
  CUDA_INVALID_DEVICE = 101,
  CUDA_INVALID_CONTEXT = 201,
  CUDA_ALREADY_MAPPED = 208,
  CUDA_INVALID_PTX = 218,
  CUDA_INVALID_HANDLE = 400,
  CUDA_ILLEGAL_STATE = 401,
  CUDA_NOT_FOUND = 500,
  CUDA_NOT_READY = 600,
  CUDA_ILLEGAL_ADDRESS = 700,
  CUDA_OUT_OF_RESOURCES = 701,
  CUDA_CONTEXT_DESTROYED = 709,
  CUDA_ALREADY_REGISTERED = 712,
  CUDA_NOT_REGISTERED = 713,
  CUDA_MISALIGNED_ADDRESS = 716,
  CUDA_LAUNCH_FAILED = 719,
  CUDA_CAPTURE_UNSUPPORTED = 900,
  CUDA_CAPTURE_INVALIDATED = 901,
  CUDA_CAPTURE_UNMATCHED = 903,
  CUDA_CAPTURE_ISOLATION = 905,
  CUDA_CAPTURE_IMPLICIT = 906,
  CUDA_CAPTURED_EVENT = 907,
  CUDA_UNKNOWN = 999,

  CUDA_STREAM_NON_BLOCKING = 1,
  CUDA_EVENT_DISABLE_TIMING = 2,
  CUDA_REGISTER_READ_ONLY = 8,
  CUDA_MEMORY_OF_HOST = 1,
  CUDA_MEMORY_OF_DEVICE = 2,

  CUDA_POINTER_CONTEXT = 1,
  CUDA_POINTER_MEMORY_TYPE = 2,
  CUDA_POINTER_DEVICE_POINTER = 3,
  CUDA_POINTER_HOST_POINTER = 4,
  CUDA_POINTER_BUFFER_ID = 7,
  CUDA_POINTER_IS_MANAGED = 8,
  CUDA_POINTER_DEVICE_ORDINAL = 9,
  CUDA_POINTER_RANGE_START = 11,
  CUDA_POINTER_RANGE_SIZE = 12
};

int cuInit(unsigned flags);
int cuDriverGetVersion(int* version);
int cuGetErrorName(int code, const char** name);
int cuGetErrorString(int code, const char** sentence);
int cuDeviceGet(int* device, int ordinal);
int cuDeviceGetCount(int* count);
int cuDeviceGetAttribute(int* value, int attribute, int device);
int cuDeviceGetName(char* name, int size, int device);

int cuDevicePrimaryCtxRetain(CudaContextHandle* context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuDevicePrimaryCtxReset_v2(int device);
int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active);
int cuCtxCreate_v2(CudaContextHandle* context, unsigned flags, int device);
int cuCtxDestroy_v2(CudaContextHandle context);
int cuCtxSetCurrent(CudaContextHandle context);
int cuCtxGetCurrent(CudaContextHandle* context);
int cuCtxPushCurrent_v2(CudaContextHandle context);
int cuCtxPopCurrent_v2(CudaContextHandle* context);
int cuCtxGetDevice(int* device);
int cuCtxSynchronize(void);
int cuCtxGetStreamPriorityRange(int* lowest, int* highest);

int cuMemAlloc_v2(CudaPointer* at, size_t bytes);
int cuMemAllocManaged(CudaPointer* at, size_t bytes, unsigned flags);
int cuMemFree_v2(CudaPointer at);
int cuMemHostAlloc(void** at, size_t bytes, unsigned flags);
int cuMemFreeHost(void* at);
int cuMemGetInfo_v2(size_t* free_bytes, size_t* all_bytes);
int cuMemHostRegister_v2(void* at, size_t bytes, unsigned flags);
int cuMemHostUnregister(void* at);
int cuPointerGetAttribute(void* value, int attribute, CudaPointer at);

int cuMemcpyAsync(CudaPointer to, CudaPointer from, size_t bytes, CudaStreamHandle stream);
int cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t bytes, CudaStreamHandle stream);
int cuMemcpyDtoHAsync_v2(void* to, CudaPointer from, size_t bytes, CudaStreamHandle stream);
int cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from, size_t bytes, CudaStreamHandle stream);
int cuMemcpyDtoD_v2(CudaPointer to, CudaPointer from, size_t bytes);
int cuMemcpyDtoH_v2(void* to, CudaPointer from, size_t bytes);
int cuMemcpyHtoD_v2(CudaPointer to, const void* from, size_t bytes);
int cuMemsetD8Async(CudaPointer to, unsigned char byte, size_t bytes, CudaStreamHandle stream);
int cuMemsetD8_v2(CudaPointer to, unsigned char byte, size_t bytes);

int cuStreamCreate(CudaStreamHandle* stream, unsigned flags);
int cuStreamCreateWithPriority(CudaStreamHandle* stream, unsigned flags, int priority);
int cuStreamDestroy_v2(CudaStreamHandle stream);
int cuStreamSynchronize(CudaStreamHandle stream);
int cuStreamQuery(CudaStreamHandle stream);
int cuStreamGetCtx(CudaStreamHandle stream, CudaContextHandle* context);
int cuStreamWaitEvent(CudaStreamHandle stream, CudaEventHandle event, unsigned flags);
int cuStreamBeginCapture_v2(CudaStreamHandle stream, int mode);
int cuStreamEndCapture(CudaStreamHandle stream, CudaGraphHandle* graph);
int cuThreadExchangeStreamCaptureMode(int* mode);
int cuStreamIsCapturing(CudaStreamHandle stream, int* status);
int cuGraphDestroy(CudaGraphHandle graph);
int cuLaunchHostFunc(CudaStreamHandle stream, void (*function)(void*), void* argument);

int cuEventCreate(CudaEventHandle* event, unsigned flags);
int cuEventDestroy_v2(CudaEventHandle event);
int cuEventRecord(CudaEventHandle event, CudaStreamHandle stream);
int cuEventSynchronize(CudaEventHandle event);
int cuEventQuery(CudaEventHandle event);

int cuModuleLoadData(CudaModuleHandle* module, const void* text);
int cuModuleUnload(CudaModuleHandle module);
int cuModuleGetFunction(CudaFunctionHandle* function, CudaModuleHandle module, const char* name);
int cuLaunchKernel(CudaFunctionHandle function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                   unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                   CudaStreamHandle stream, void** arguments, void** extra);

#ifdef __cplusplus
}
#endif
