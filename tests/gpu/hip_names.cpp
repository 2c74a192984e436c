// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of AMD's driver that are used, made of those of this one, as far as they are the same.
// HIP has a current device of each thread, which need not be named, and an error that a failed call
// leaves for who asks. What it does otherwise is from its source, of ROCm 6.
#include <cstring>

#include "driver.hpp"

namespace {

constexpr int not_supported = 801;

thread_local int last_error = 0;

int noted(int code) {
  if (code != 0) last_error = code;
  return code;
}

int device_now() {
  const CudaContext* const context = fake::current_context();
  return context == nullptr ? 0 : context->device;
}

// Its context, which the program keeps alive, is the thread's. No call that is counted, or fails.
int set_device(int device) {
  const fake::Lock lock(fake::driver().lock);
  if (!fake::driver().is_initialised) return CUDA_NOT_INITIALISED;
  if (device < 0 || device >= fake::settings().devices) return CUDA_INVALID_DEVICE;
  fake::current_contexts() = {fake::driver().contexts.at(static_cast<std::size_t>(device)).get()};
  return CUDA_OK;
}

// A call in the context of the thread's device.
template <typename Call, typename... Arguments>
int on_device(Call* call, Arguments... arguments) {
  const int code = set_device(device_now());
  return noted(code != 0 ? code : call(arguments...));
}

CudaPointer pointer(const void* at) {
  return reinterpret_cast<CudaPointer>(at);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int hipGetDevice(int* device) {
  *device = device_now();
  return 0;
}
int hipSetDevice(int device) {
  return noted(set_device(device));
}
int hipPeekAtLastError() {
  return last_error;
}
int hipGetLastError() {
  const int code = last_error;
  last_error = 0;
  return code;
}
int hipDeviceSynchronize() {
  return on_device(cuCtxSynchronize);
}
int hipDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  return on_device(cuCtxGetStreamPriorityRange, lowest, highest);
}

int hipPointerGetAttribute(void* answer, int attribute, void* at) {
  if (attribute == CUDA_POINTER_CONTEXT) return noted(not_supported);
  if (attribute != CUDA_POINTER_RANGE_SIZE) {
    return on_device(cuPointerGetAttribute, answer, attribute, pointer(at));
  }
  size_t size = 0;
  const int code =
      on_device(cuPointerGetAttribute, static_cast<void*>(&size), attribute, pointer(at));
  const auto short_size = static_cast<uint32_t>(size);
  if (code == 0) std::memcpy(answer, &short_size, sizeof short_size);
  return code;
}
int hipMemGetAddressRange(void** start, size_t* size, void* at) {
  const int code = on_device(cuPointerGetAttribute, static_cast<void*>(start),
                             static_cast<int>(CUDA_POINTER_RANGE_START), pointer(at));
  return code != 0 ? code
                   : on_device(cuPointerGetAttribute, static_cast<void*>(size),
                               static_cast<int>(CUDA_POINTER_RANGE_SIZE), pointer(at));
}
int hipMalloc(void** at, size_t bytes) {
  return on_device(cuMemAlloc_v2, reinterpret_cast<CudaPointer*>(at), bytes);
}
int hipMemGetInfo(size_t* free_bytes, size_t* all_bytes) {
  return on_device(cuMemGetInfo_v2, free_bytes, all_bytes);
}
int hipFree(void* at) {
  return on_device(cuMemFree_v2, pointer(at));
}
int hipHostRegister(void* at, size_t bytes, unsigned flags) {
  return on_device(cuMemHostRegister_v2, at, bytes, flags);
}
int hipHostUnregister(void* at) {
  return on_device(cuMemHostUnregister, at);
}

int hipMemcpyDtoHAsync(void* to, void* from, size_t bytes, CudaStreamHandle stream) {
  return on_device(cuMemcpyDtoHAsync_v2, to, pointer(from), bytes, stream);
}
int hipMemcpyHtoDAsync(void* to, const void* from, size_t bytes, CudaStreamHandle stream) {
  return on_device(cuMemcpyHtoDAsync_v2, pointer(to), from, bytes, stream);
}
int hipMemcpyDtoDAsync(void* to, void* from, size_t bytes, CudaStreamHandle stream) {
  return on_device(cuMemcpyDtoDAsync_v2, pointer(to), pointer(from), bytes, stream);
}
int hipMemsetD8Async(void* to, unsigned char byte, size_t bytes, CudaStreamHandle stream) {
  return on_device(cuMemsetD8Async, pointer(to), byte, bytes, stream);
}

int hipStreamCreateWithPriority(CudaStreamHandle* stream, unsigned flags, int priority) {
  return on_device(cuStreamCreateWithPriority, stream, flags, priority);
}
int hipStreamDestroy(CudaStreamHandle stream) {
  return on_device(cuStreamDestroy_v2, stream);
}
int hipStreamWaitEvent(CudaStreamHandle stream, CudaEventHandle event, unsigned flags) {
  return on_device(cuStreamWaitEvent, stream, event, flags);
}
int hipStreamSynchronize(CudaStreamHandle stream) {
  return on_device(cuStreamSynchronize, stream);
}
int hipStreamIsCapturing(CudaStreamHandle stream, int* status) {
  return on_device(cuStreamIsCapturing, stream, status);
}
int hipThreadExchangeStreamCaptureMode(int* mode) {
  return on_device(cuThreadExchangeStreamCaptureMode, mode);
}

int hipEventCreateWithFlags(CudaEventHandle* event, unsigned flags) {
  return on_device(cuEventCreate, event, flags);
}
int hipEventDestroy(CudaEventHandle event) {
  return on_device(cuEventDestroy_v2, event);
}
int hipEventRecord(CudaEventHandle event, CudaStreamHandle stream) {
  return on_device(cuEventRecord, event, stream);
}
int hipEventSynchronize(CudaEventHandle event) {
  return on_device(cuEventSynchronize, event);
}
int hipDrvGetErrorName(int code, const char** name) {
  return cuGetErrorName(code, name);
}
int hipDrvGetErrorString(int code, const char** sentence) {
  return cuGetErrorString(code, sentence);
}

}  // extern "C"
#pragma GCC visibility pop
