// SPDX-License-Identifier: BSD-3-Clause
//
// The driver's calls about memory.
#include "address.hpp"
#include "driver.hpp"

using fake::call;
using fake::current_context;
using fake::driver;
using fake::Kind;
using fake::Lock;
using fake::Needs;
using fake::Place;
using fake::settings;

namespace fake {
namespace {

Place place_of(const void* at) {
  return reinterpret_cast<Place>(at);
}

bool is_of_gpu(Place at) {
  const Range* const range = driver().ranges.find(at);
  return range != nullptr && range->is_of_gpu();
}
bool is_known(Place at) {
  return driver().ranges.find(at) != nullptr;
}

int allocate(const char* name, Kind kind, std::size_t size_bytes, Place* at) {
  return call(name, Needs::context, [&](Lock&) {
    const int code = unsafe_while_capturing();
    if (code != CUDA_OK) return code;
    return driver().ranges.allocate(kind, size_bytes, current_context(), at);
  });
}

// What a device is doing with the memory is finished before.
int release(const char* name, Place at, bool of_gpu) {
  return call(name, Needs::context, [&](Lock& lock) {
    if (at == 0) return static_cast<int>(CUDA_OK);
    int code = unsafe_while_capturing();
    if (code != CUDA_OK) return code;
    const Range* const range = driver().ranges.find(at);
    if (range == nullptr) return static_cast<int>(CUDA_INVALID_VALUE);
    code = wait_for_all(lock, *range->context);
    return code != CUDA_OK ? code : driver().ranges.release(at, of_gpu);
  });
}

template <typename T>
int tell(void* value, T answer) {
  *static_cast<T*>(value) = answer;
  return CUDA_OK;
}

int pointer_attribute(void* value, int attribute, Place at) {
  const Range* const range = driver().ranges.find(at);
  if (range == nullptr) return CUDA_INVALID_VALUE;
  switch (attribute) {
    case CUDA_POINTER_CONTEXT:
      return tell<CudaContext*>(value, settings().null_context ? nullptr : range->context);
    case CUDA_POINTER_MEMORY_TYPE:
      return tell<unsigned>(value,
                            range->is_of_gpu() ? CUDA_MEMORY_OF_DEVICE : CUDA_MEMORY_OF_HOST);
    case CUDA_POINTER_DEVICE_POINTER:
      return tell<Place>(value, at);
    case CUDA_POINTER_HOST_POINTER:
      return range->kind == Kind::of_device ? CUDA_INVALID_VALUE : tell<Place>(value, at);
    case CUDA_POINTER_BUFFER_ID:
      return tell<std::uint64_t>(value, range->number);
    case CUDA_POINTER_IS_MANAGED:
      return tell<unsigned>(value, range->kind == Kind::managed ? 1 : 0);
    case CUDA_POINTER_DEVICE_ORDINAL:
      return tell<int>(value, range->context->device);
    case CUDA_POINTER_RANGE_START:
      return tell<Place>(value, range->begin);
    case CUDA_POINTER_RANGE_SIZE:
      return tell<std::size_t>(value, range->size_bytes);
    default:
      return CUDA_INVALID_VALUE;
  }
}

int copy_to_host(Lock& lock, Place to, Place from, std::size_t size_bytes, CudaStreamHandle stream,
                 bool wait) {
  if (is_of_gpu(to) || (size_bytes != 0 && !is_known(from))) return CUDA_INVALID_VALUE;
  return submit_copy(lock, stream, to, from, size_bytes, wait);
}
int copy_to_device(Lock& lock, Place to, Place from, std::size_t size_bytes,
                   CudaStreamHandle stream, bool wait) {
  if (is_of_gpu(from) || (size_bytes != 0 && !is_known(to))) return CUDA_INVALID_VALUE;
  return submit_copy(lock, stream, to, from, size_bytes, wait);
}
int copy_on_device(Lock& lock, Place to, Place from, std::size_t size_bytes,
                   CudaStreamHandle stream, bool wait) {
  if (size_bytes != 0 && (!is_known(to) || !is_known(from))) return CUDA_INVALID_VALUE;
  return submit_copy(lock, stream, to, from, size_bytes, wait);
}

}  // namespace
}  // namespace fake

FAKE_EXPORTED int cuMemAlloc_v2(CudaPointer* at, size_t bytes) {
  return fake::allocate("cuMemAlloc_v2", Kind::of_device, bytes, at);
}
FAKE_EXPORTED int cuMemAllocManaged(CudaPointer* at, size_t bytes, unsigned flags) {
  if (flags != 1 && flags != 2) return CUDA_INVALID_VALUE;  // for all streams, or for the host's
  return fake::allocate("cuMemAllocManaged", Kind::managed, bytes, at);
}
FAKE_EXPORTED int cuMemHostAlloc(void** at, size_t bytes, unsigned) {
  Place got = 0;
  const int code = fake::allocate("cuMemHostAlloc", Kind::of_host, bytes, &got);
  if (code == CUDA_OK) *at = fake::at_address(got);
  return code;
}
FAKE_EXPORTED int cuMemFree_v2(CudaPointer at) {
  return fake::release("cuMemFree_v2", at, true);
}
FAKE_EXPORTED int cuMemFreeHost(void* at) {
  return fake::release("cuMemFreeHost", fake::place_of(at), false);
}
FAKE_EXPORTED int cuMemGetInfo_v2(size_t* free_bytes, size_t* all_bytes) {
  return call("cuMemGetInfo_v2", Needs::context, [&](Lock&) {
    const std::uint64_t taken = driver().ranges.device_bytes(current_context()->device);
    *all_bytes = settings().bytes;
    *free_bytes = *all_bytes > taken ? *all_bytes - taken : 0;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuMemHostRegister_v2(void* at, size_t bytes, unsigned flags) {
  return call("cuMemHostRegister_v2", Needs::context, [&](Lock&) {
    const int code = fake::unsafe_while_capturing();
    if (code != CUDA_OK) return code;
    return driver().ranges.add_registered(
        fake::place_of(at), bytes, (flags & CUDA_REGISTER_READ_ONLY) != 0, current_context());
  });
}
FAKE_EXPORTED int cuMemHostUnregister(void* at) {
  return call("cuMemHostUnregister", Needs::context, [&](Lock& lock) {
    int code = fake::unsafe_while_capturing();
    if (code != CUDA_OK) return code;
    const fake::Range* const range = driver().ranges.find(fake::place_of(at));
    if (range == nullptr) return static_cast<int>(CUDA_NOT_REGISTERED);
    code = fake::wait_for_all(lock, *range->context);
    return code != CUDA_OK ? code : driver().ranges.remove_registered(fake::place_of(at));
  });
}
FAKE_EXPORTED int cuPointerGetAttribute(void* value, int attribute, CudaPointer at) {
  return call("cuPointerGetAttribute", Needs::initialised,
              [&](Lock&) { return fake::pointer_attribute(value, attribute, at); });
}

FAKE_EXPORTED int cuMemcpyAsync(CudaPointer to, CudaPointer from, size_t bytes,
                                CudaStreamHandle stream) {
  return call("cuMemcpyAsync", Needs::context,
              [&](Lock& lock) { return fake::submit_copy(lock, stream, to, from, bytes, false); });
}
FAKE_EXPORTED int cuMemcpyDtoDAsync_v2(CudaPointer to, CudaPointer from, size_t bytes,
                                       CudaStreamHandle stream) {
  return call("cuMemcpyDtoDAsync_v2", Needs::context, [&](Lock& lock) {
    return fake::copy_on_device(lock, to, from, bytes, stream, false);
  });
}
FAKE_EXPORTED int cuMemcpyDtoHAsync_v2(void* to, CudaPointer from, size_t bytes,
                                       CudaStreamHandle stream) {
  return call("cuMemcpyDtoHAsync_v2", Needs::context, [&](Lock& lock) {
    return fake::copy_to_host(lock, fake::place_of(to), from, bytes, stream, false);
  });
}
FAKE_EXPORTED int cuMemcpyHtoDAsync_v2(CudaPointer to, const void* from, size_t bytes,
                                       CudaStreamHandle stream) {
  return call("cuMemcpyHtoDAsync_v2", Needs::context, [&](Lock& lock) {
    return fake::copy_to_device(lock, to, fake::place_of(from), bytes, stream, false);
  });
}
FAKE_EXPORTED int cuMemcpyDtoD_v2(CudaPointer to, CudaPointer from, size_t bytes) {
  return call("cuMemcpyDtoD_v2", Needs::context, [&](Lock& lock) {
    return fake::copy_on_device(lock, to, from, bytes, nullptr, true);
  });
}
FAKE_EXPORTED int cuMemcpyDtoH_v2(void* to, CudaPointer from, size_t bytes) {
  return call("cuMemcpyDtoH_v2", Needs::context, [&](Lock& lock) {
    return fake::copy_to_host(lock, fake::place_of(to), from, bytes, nullptr, true);
  });
}
FAKE_EXPORTED int cuMemcpyHtoD_v2(CudaPointer to, const void* from, size_t bytes) {
  return call("cuMemcpyHtoD_v2", Needs::context, [&](Lock& lock) {
    return fake::copy_to_device(lock, to, fake::place_of(from), bytes, nullptr, true);
  });
}
FAKE_EXPORTED int cuMemsetD8Async(CudaPointer to, unsigned char byte, size_t bytes,
                                  CudaStreamHandle stream) {
  return call("cuMemsetD8Async", Needs::context,
              [&](Lock& lock) { return fake::submit_fill(lock, stream, to, byte, bytes, false); });
}
FAKE_EXPORTED int cuMemsetD8_v2(CudaPointer to, unsigned char byte, size_t bytes) {
  return call("cuMemsetD8_v2", Needs::context,
              [&](Lock& lock) { return fake::submit_fill(lock, nullptr, to, byte, bytes, true); });
}
