// SPDX-License-Identifier: BSD-3-Clause
//
// The driver's calls about devices and contexts, and what tests ask it.
#include <algorithm>
#include <cstring>
#include <string_view>

#include "driver.hpp"
#include "fake_cuda.h"

using fake::call;
using fake::driver;
using fake::Lock;
using fake::Needs;
using fake::settings;

namespace fake {

Driver& driver() {
  static Driver* const the_driver = new Driver;  // outlives every thread
  return *the_driver;
}

std::vector<CudaContext*>& current_contexts() {
  thread_local std::vector<CudaContext*> contexts;
  return contexts;
}
CudaContext* current_context() {
  return current_contexts().empty() ? nullptr : current_contexts().back();
}

int code_now(Needs needs) {
  if (needs == Needs::nothing) return CUDA_OK;
  if (!driver().is_initialised || settings().is_other_process()) return CUDA_NOT_INITIALISED;
  if (needs == Needs::initialised) return CUDA_OK;
  const CudaContext* const context = current_context();
  if (context == nullptr) return CUDA_INVALID_CONTEXT;
  return context->is_alive ? context->broken : CUDA_CONTEXT_DESTROYED;
}

namespace {

bool is_device(int device) {
  return device >= 0 && device < settings().devices;
}
CudaContext& primary_of(int device) {
  return *driver().contexts.at(static_cast<std::size_t>(device));
}
bool is_context(const CudaContext* context) {
  const auto& all = driver().contexts;
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return one.get() == context; });
}

// All that was made in it is gone, and its handles are no handles any more.
void tear_down(Lock& lock, CudaContext& context) {
  wait_for_all(lock, context);
  end_streams(lock, context);
  auto& all = driver();
  all.ranges.release_all_of(&context);
  context.null_stream = nullptr;
  std::erase_if(all.streams, [&](const auto& one) { return one.second->context == &context; });
  std::erase_if(all.events, [&](const auto& one) { return one.second->context == &context; });
  std::erase_if(all.functions, [&](const auto& one) { return one.second->context == &context; });
  std::erase_if(all.modules, [&](const auto& one) { return one.second->context == &context; });
  context.is_alive = false;
  all.changed.notify_all();
}

int attribute_of(int attribute, int* value) {
  constexpr int all_attributes = 150;
  if (attribute < 1 || attribute > all_attributes) return CUDA_INVALID_VALUE;
  switch (attribute) {
    case 1:  // threads of a block
      *value = 1024;
      return CUDA_OK;
    case 10:  // lanes
      *value = 32;
      return CUDA_OK;
    case 16:  // multiprocessors
      *value = 4;
      return CUDA_OK;
    case 40:  // copy engines
      *value = 2;
      return CUDA_OK;
    case 75:  // compute capability
      *value = 7;
      return CUDA_OK;
    case 41:   // one address space
    case 83:   // managed memory
    case 89:   // which the processor may use at any time
    case 99:   // registering
    case 113:  // of read-only memory
      *value = 1;
      return CUDA_OK;
    case 91:  // kernels reach registered memory where the host has it
      *value = settings().other_addresses ? 0 : 1;
      return CUDA_OK;
    case 88:  // the device reads the host's pages
    case 100:
      *value = settings().host_tables ? 1 : 0;
      return CUDA_OK;
    default:
      *value = 0;
      return CUDA_OK;
  }
}

struct Error {
  int code;
  const char* name;
  const char* sentence;
};
constexpr Error errors[] = {
    {CUDA_OK, "CUDA_SUCCESS", "no error"},
    {CUDA_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_NOT_INITIALISED, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {CUDA_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_INVALID_DEVICE, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {CUDA_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ALREADY_MAPPED, "CUDA_ERROR_ALREADY_MAPPED", "resource already mapped"},
    {CUDA_INVALID_PTX, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {CUDA_INVALID_HANDLE, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {CUDA_ILLEGAL_STATE, "CUDA_ERROR_ILLEGAL_STATE",
     "the operation cannot be performed in the present state"},
    {CUDA_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_NOT_READY, "CUDA_ERROR_NOT_READY", "device not ready"},
    {CUDA_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_OUT_OF_RESOURCES, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
     "too many resources requested for launch"},
    {CUDA_CONTEXT_DESTROYED, "CUDA_ERROR_CONTEXT_IS_DESTROYED", "context is destroyed"},
    {CUDA_ALREADY_REGISTERED, "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
     "part or all of the requested memory range is already mapped"},
    {CUDA_NOT_REGISTERED, "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED",
     "pointer does not correspond to a registered memory region"},
    {CUDA_MISALIGNED_ADDRESS, "CUDA_ERROR_MISALIGNED_ADDRESS", "misaligned address"},
    {CUDA_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
    {CUDA_CAPTURE_UNSUPPORTED, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
     "operation not permitted when stream is capturing"},
    {CUDA_CAPTURE_INVALIDATED, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
     "operation failed due to a previous error during capture"},
    {CUDA_CAPTURE_UNMATCHED, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED",
     "capture was not ended in the same stream as it began"},
    {CUDA_CAPTURE_ISOLATION, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION",
     "dependency created on uncaptured work in another stream"},
    {CUDA_CAPTURE_IMPLICIT, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT",
     "operation would make the legacy stream depend on a capturing blocking stream"},
    {CUDA_CAPTURED_EVENT, "CUDA_ERROR_CAPTURED_EVENT",
     "operation not permitted on an event last recorded in a capturing stream"},
    {CUDA_UNKNOWN, "CUDA_ERROR_UNKNOWN", "unknown error"},
};
const Error* error_of(int code) {
  const auto* const found = std::find_if(std::begin(errors), std::end(errors),
                                         [&](const Error& error) { return error.code == code; });
  return found == std::end(errors) ? nullptr : found;
}

}  // namespace
}  // namespace fake

FAKE_EXPORTED int cuInit(unsigned flags) {
  return call("cuInit", Needs::nothing, [&](Lock&) -> int {
    if (flags != 0) return CUDA_INVALID_VALUE;
    if (settings().is_other_process()) return CUDA_NOT_INITIALISED;
    if (settings().devices < 1) return CUDA_NO_DEVICE;
    if (driver().is_initialised) return CUDA_OK;
    settings().print_seed();
    for (int device = 0; device < settings().devices; device++) {
      auto context = std::make_unique<CudaContext>();
      context->device = device;
      context->is_primary = true;
      driver().contexts.push_back(std::move(context));
    }
    driver().is_initialised = true;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuDriverGetVersion(int* version) {
  return call("cuDriverGetVersion", Needs::nothing, [&](Lock&) {
    *version = 13000;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuGetErrorName(int code, const char** name) {
  return call("cuGetErrorName", Needs::nothing, [&](Lock&) {
    const auto* const error = fake::error_of(code);
    *name = error == nullptr ? nullptr : error->name;
    return error == nullptr ? CUDA_INVALID_VALUE : CUDA_OK;
  });
}
FAKE_EXPORTED int cuGetErrorString(int code, const char** sentence) {
  return call("cuGetErrorString", Needs::nothing, [&](Lock&) {
    const auto* const error = fake::error_of(code);
    *sentence = error == nullptr ? nullptr : error->sentence;
    return error == nullptr ? CUDA_INVALID_VALUE : CUDA_OK;
  });
}

FAKE_EXPORTED int cuDeviceGet(int* device, int ordinal) {
  return call("cuDeviceGet", Needs::initialised, [&](Lock&) {
    if (!fake::is_device(ordinal)) return CUDA_INVALID_DEVICE;
    *device = ordinal;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuDeviceGetCount(int* count) {
  return call("cuDeviceGetCount", Needs::initialised, [&](Lock&) {
    *count = settings().devices;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int device) {
  return call("cuDeviceGetAttribute", Needs::initialised, [&](Lock&) -> int {
    if (!fake::is_device(device)) return CUDA_INVALID_DEVICE;
    return fake::attribute_of(attribute, value);
  });
}
FAKE_EXPORTED int cuDeviceGetName(char* name, int size, int device) {
  return call("cuDeviceGetName", Needs::initialised, [&](Lock&) {
    if (!fake::is_device(device)) return CUDA_INVALID_DEVICE;
    if (name == nullptr || size < 1) return CUDA_INVALID_VALUE;
    const std::string_view own = "fake device without a GPU";
    const std::size_t length = std::min(own.size(), static_cast<std::size_t>(size) - 1);
    std::memcpy(name, own.data(), length);
    name[length] = 0;
    return CUDA_OK;
  });
}

FAKE_EXPORTED int cuDevicePrimaryCtxRetain(CudaContextHandle* context, int device) {
  return call("cuDevicePrimaryCtxRetain", Needs::initialised, [&](Lock&) {
    if (!fake::is_device(device)) return CUDA_INVALID_DEVICE;
    CudaContext& primary = fake::primary_of(device);
    if (!primary.is_alive) primary.broken = CUDA_OK;
    primary.is_alive = true;
    primary.retained++;
    *context = &primary;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuDevicePrimaryCtxRelease_v2(int device) {
  return call("cuDevicePrimaryCtxRelease_v2", Needs::initialised, [&](Lock& lock) {
    if (!fake::is_device(device)) return CUDA_INVALID_DEVICE;
    CudaContext& primary = fake::primary_of(device);
    if (primary.retained == 0) return CUDA_INVALID_CONTEXT;
    if (--primary.retained == 0) fake::tear_down(lock, primary);
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuDevicePrimaryCtxReset_v2(int device) {
  return call("cuDevicePrimaryCtxReset_v2", Needs::initialised, [&](Lock& lock) {
    if (!fake::is_device(device)) return CUDA_INVALID_DEVICE;
    CudaContext& primary = fake::primary_of(device);
    if (primary.is_alive) fake::tear_down(lock, primary);
    primary.broken = CUDA_OK;
    primary.is_alive = primary.retained != 0;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuDevicePrimaryCtxGetState(int device, unsigned* flags, int* active) {
  return call("cuDevicePrimaryCtxGetState", Needs::initialised, [&](Lock&) {
    if (!fake::is_device(device)) return CUDA_INVALID_DEVICE;
    *flags = 0;
    *active = fake::primary_of(device).is_alive ? 1 : 0;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxCreate_v2(CudaContextHandle* context, unsigned, int device) {
  return call("cuCtxCreate_v2", Needs::initialised, [&](Lock&) {
    if (!fake::is_device(device)) return CUDA_INVALID_DEVICE;
    auto made = std::make_unique<CudaContext>();
    made->device = device;
    made->is_alive = true;
    *context = made.get();
    fake::current_contexts().push_back(made.get());
    driver().contexts.push_back(std::move(made));
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxDestroy_v2(CudaContextHandle context) {
  return call("cuCtxDestroy_v2", Needs::initialised, [&](Lock& lock) {
    if (!fake::is_context(context) || context->is_primary) return CUDA_INVALID_CONTEXT;
    if (!context->is_alive) return CUDA_CONTEXT_DESTROYED;
    fake::tear_down(lock, *context);
    auto& stack = fake::current_contexts();
    if (!stack.empty() && stack.back() == context) stack.pop_back();
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxSetCurrent(CudaContextHandle context) {
  return call("cuCtxSetCurrent", Needs::initialised, [&](Lock&) {
    if (context != nullptr && !fake::is_context(context)) return CUDA_INVALID_CONTEXT;
    auto& stack = fake::current_contexts();
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxGetCurrent(CudaContextHandle* context) {
  return call("cuCtxGetCurrent", Needs::initialised, [&](Lock&) {
    *context = fake::current_context();
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxPushCurrent_v2(CudaContextHandle context) {
  return call("cuCtxPushCurrent_v2", Needs::initialised, [&](Lock&) {
    if (!fake::is_context(context)) return CUDA_INVALID_CONTEXT;
    fake::current_contexts().push_back(context);
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxPopCurrent_v2(CudaContextHandle* context) {
  return call("cuCtxPopCurrent_v2", Needs::initialised, [&](Lock&) {
    auto& stack = fake::current_contexts();
    if (stack.empty()) return CUDA_INVALID_CONTEXT;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxGetDevice(int* device) {
  return call("cuCtxGetDevice", Needs::context, [&](Lock&) {
    *device = fake::current_context()->device;
    return CUDA_OK;
  });
}
FAKE_EXPORTED int cuCtxSynchronize() {
  return call("cuCtxSynchronize", Needs::context, [&](Lock& lock) {
    const int code = fake::unsafe_while_capturing();
    return code != CUDA_OK ? code : fake::wait_for_all(lock, *fake::current_context());
  });
}
FAKE_EXPORTED int cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  return call("cuCtxGetStreamPriorityRange", Needs::context, [&](Lock&) {
    if (lowest != nullptr) *lowest = 0;
    if (highest != nullptr) *highest = -5;
    return CUDA_OK;
  });
}

// ---- What tests say and ask

FAKE_EXPORTED uint64_t fake_cuda_calls(const char* name) {
  return settings().calls(name);
}
FAKE_EXPORTED void fake_cuda_fail(const char* name, uint64_t at, int code, int sticky) {
  settings().fail(name, at, code, sticky != 0);
}
FAKE_EXPORTED void fake_cuda_break(int device, int code) {
  const Lock lock(driver().lock);
  fake::break_context(fake::primary_of(device), code);
}
FAKE_EXPORTED void fake_cuda_skip(const char* kernel) {
  settings().skip(kernel);
}
FAKE_EXPORTED void fake_cuda_set_bytes(uint64_t bytes) {
  settings().bytes = bytes;
}
FAKE_EXPORTED void fake_cuda_set_delay_us(unsigned delay_us_max) {
  settings().delay_us_max = delay_us_max;
}
FAKE_EXPORTED void fake_cuda_set_no_registering(int on) {
  settings().no_registering = on != 0;
}
FAKE_EXPORTED void fake_cuda_set_other_addresses(int on) {
  settings().other_addresses = on != 0;
}
FAKE_EXPORTED void fake_cuda_set_null_context(int on) {
  settings().null_context = on != 0;
}
FAKE_EXPORTED uint64_t fake_cuda_device_bytes() {
  const Lock lock(driver().lock);
  return driver().ranges.device_bytes(-1);
}
FAKE_EXPORTED uint64_t fake_cuda_registrations() {
  const Lock lock(driver().lock);
  return driver().ranges.count(fake::Kind::registered);
}
FAKE_EXPORTED uint64_t fake_cuda_registered_bytes() {
  const Lock lock(driver().lock);
  return driver().ranges.registered_bytes();
}
FAKE_EXPORTED uint64_t fake_cuda_streams() {
  const Lock lock(driver().lock);
  const auto& all = driver().streams;
  return static_cast<uint64_t>(
      std::count_if(all.begin(), all.end(), [](const auto& one) { return !one.second->is_gone; }));
}
FAKE_EXPORTED uint64_t fake_cuda_events() {
  const Lock lock(driver().lock);
  return driver().events.size();
}
FAKE_EXPORTED void* fake_cuda_see(uint64_t pointer) {
  const Lock lock(driver().lock);
  const fake::Range* const range = driver().ranges.find(pointer);
  std::size_t follow = 0;
  return range == nullptr ? nullptr : fake::Ranges::look(*range, pointer, &follow);
}
FAKE_EXPORTED void fake_cuda_hold() {
  const Lock lock(driver().lock);
  driver().is_held = true;
}
FAKE_EXPORTED void fake_cuda_go_on() {
  const Lock lock(driver().lock);
  driver().is_held = false;
  driver().changed.notify_all();
}
