// SPDX-License-Identifier: BSD-3-Clause
#include "device/hip_driver.hpp"

#include <vector>

#include "device/driver_library.hpp"

namespace perdure {
namespace {

// Of hip_runtime_api.h.
constexpr int success = 0;
constexpr int not_supported = 801;

struct HipCalls {
  int (*pointer_get_attribute)(void*, int, DeviceAddress) = nullptr;
  int (*address_range)(DeviceAddress*, std::size_t*, DeviceAddress) = nullptr;
  int (*get_device)(int*) = nullptr;
  int (*set_device)(int) = nullptr;
  int (*peek_at_last_error)() = nullptr;
  int (*get_last_error)() = nullptr;
};
HipCalls hip;  // set once, before any driver has it in its table

DriverHandle handle_of(int ordinal) {
  return reinterpret_cast<DriverHandle>(static_cast<std::uintptr_t>(ordinal) + 1);
}
int ordinal_of(DriverHandle context) {
  return static_cast<int>(reinterpret_cast<std::uintptr_t>(context) - 1);
}

int context_at(DriverHandle* context, DeviceAddress at) {
  int ordinal = 0;
  const int result = hip.pointer_get_attribute(&ordinal, ordinal_attribute, at);
  if (result == success) *context = handle_of(ordinal);
  return result;
}

// hipPointerGetAttribute() has 32 bits for a size.
int range_at(std::uint64_t* answer, bool its_size, DeviceAddress at) {
  DeviceAddress start = 0;
  std::size_t size = 0;
  const int result = hip.address_range(&start, &size, at);
  if (result == success) *answer = its_size ? size : start;
  return result;
}

int answer(void* to, int attribute, DeviceAddress at) {
  switch (attribute) {
    case context_attribute:
      return context_at(static_cast<DriverHandle*>(to), at);
    case range_start_attribute:
    case range_size_attribute:
      return range_at(static_cast<std::uint64_t*>(to), attribute == range_size_attribute, at);
    default:
      return hip.pointer_get_attribute(to, attribute, at);
  }
}

int pointer_get_attribute(void* to, int attribute, DeviceAddress at) {
  const int before = hip.peek_at_last_error();
  const int result = answer(to, attribute, at);
  if (result != success && before == success) (void)hip.get_last_error();
  return result;
}

std::vector<int>& devices_before() {
  thread_local std::vector<int> devices;
  return devices;
}

int ctx_push(DriverHandle context) {
  int before = 0;
  const int result = hip.get_device(&before);
  if (result != success) return result;
  const int taken = hip.set_device(ordinal_of(context));
  if (taken == success) devices_before().push_back(before);
  return taken;
}

int ctx_pop(DriverHandle*) {
  const int before = devices_before().back();
  devices_before().pop_back();
  return hip.set_device(before);
}

int primary_ctx_retain(DriverHandle* context, int ordinal) {
  *context = handle_of(ordinal);
  return success;
}

int device_get_attribute(int*, int, int) {
  return not_supported;
}

int module_load(DriverHandle*, const void*) {
  return not_supported;
}

}  // namespace

void look_up_hip(void* library, CudaDriver& to) {
  LookUp at(library);
  at.needed(hip.pointer_get_attribute, "hipPointerGetAttribute");
  at.needed(hip.address_range, "hipMemGetAddressRange");
  at.needed(hip.get_device, "hipGetDevice");
  at.needed(hip.set_device, "hipSetDevice");
  at.needed(hip.peek_at_last_error, "hipPeekAtLastError");
  at.needed(hip.get_last_error, "hipGetLastError");
  to.pointer_get_attribute = pointer_get_attribute;
  to.device_get_attribute = device_get_attribute;
  to.primary_ctx_retain = primary_ctx_retain;
  to.ctx_push = ctx_push;
  to.ctx_pop = ctx_pop;
  to.module_load = module_load;
  at.needed(to.ctx_synchronize, "hipDeviceSynchronize");
  at.needed(to.ctx_stream_priorities, "hipDeviceGetStreamPriorityRange");
  at.needed(to.mem_alloc, "hipMalloc");
  at.needed(to.mem_free, "hipFree");
  at.needed(to.host_register, "hipHostRegister");
  at.needed(to.host_unregister, "hipHostUnregister");
  at.needed(to.copy_to_host, "hipMemcpyDtoHAsync");
  at.needed(to.copy_from_host, "hipMemcpyHtoDAsync");
  at.needed(to.copy_within, "hipMemcpyDtoDAsync");
  at.needed(to.set_bytes, "hipMemsetD8Async");
  at.needed(to.stream_create, "hipStreamCreateWithPriority");
  at.needed(to.stream_destroy, "hipStreamDestroy");
  at.needed(to.stream_wait_event, "hipStreamWaitEvent");
  at.needed(to.stream_synchronize, "hipStreamSynchronize");
  at.needed(to.stream_is_capturing, "hipStreamIsCapturing");
  at.needed(to.event_create, "hipEventCreateWithFlags");
  at.needed(to.event_destroy, "hipEventDestroy");
  at.needed(to.event_record, "hipEventRecord");
  at.needed(to.event_synchronize, "hipEventSynchronize");
  at.needed(to.error_name, "hipDrvGetErrorName");
  at.needed(to.error_string, "hipDrvGetErrorString");
  at.optional(to.mem_room, "hipMemGetInfo");
  at.optional(to.exchange_capture_mode, "hipThreadExchangeStreamCaptureMode");
  to.complete = at.complete();
}

}  // namespace perdure
