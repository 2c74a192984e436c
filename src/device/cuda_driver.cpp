// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda_driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <initializer_list>
#include <mutex>
#include <string>
#include <vector>

#include "device/driver_library.hpp"
#include "device/hip_driver.hpp"

namespace perdure {
namespace {

constexpr int out_of_memory = 2;
constexpr int capture_first = 900;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED and its relatives
constexpr int capture_last = 908;

// How many libraries the process has loaded so far.
std::uint64_t libraries_loaded() {
  std::uint64_t loaded = 0;
  const auto first = [](dl_phdr_info* info, std::size_t, void* result) {
    *static_cast<std::uint64_t*>(result) = info->dlpi_adds;
    return 1;
  };
  (void)::dl_iterate_phdr(first, &loaded);
  return loaded;
}

void look_up_cuda(void* library, CudaDriver& to) {
  LookUp at(library);
  at.needed(to.pointer_get_attribute, "cuPointerGetAttribute");
  at.needed(to.device_get_attribute, "cuDeviceGetAttribute");
  at.needed(to.primary_ctx_retain, "cuDevicePrimaryCtxRetain");
  at.needed(to.ctx_push, "cuCtxPushCurrent_v2");
  at.needed(to.ctx_pop, "cuCtxPopCurrent_v2");
  at.needed(to.ctx_synchronize, "cuCtxSynchronize");
  at.needed(to.ctx_stream_priorities, "cuCtxGetStreamPriorityRange");
  at.needed(to.mem_alloc, "cuMemAlloc_v2");
  at.needed(to.mem_free, "cuMemFree_v2");
  at.needed(to.host_register, "cuMemHostRegister_v2");
  at.needed(to.host_unregister, "cuMemHostUnregister");
  at.needed(to.copy_to_host, "cuMemcpyDtoHAsync_v2");
  at.needed(to.copy_from_host, "cuMemcpyHtoDAsync_v2");
  at.needed(to.copy_within, "cuMemcpyDtoDAsync_v2");
  at.needed(to.set_bytes, "cuMemsetD8Async");
  at.needed(to.stream_create, "cuStreamCreateWithPriority");
  at.needed(to.stream_destroy, "cuStreamDestroy_v2");
  at.needed(to.stream_wait_event, "cuStreamWaitEvent");
  at.needed(to.stream_synchronize, "cuStreamSynchronize");
  at.needed(to.stream_is_capturing, "cuStreamIsCapturing");
  at.needed(to.event_create, "cuEventCreate");
  at.needed(to.event_destroy, "cuEventDestroy_v2");
  at.needed(to.event_record, "cuEventRecord");
  at.needed(to.event_synchronize, "cuEventSynchronize");
  at.needed(to.module_load, "cuModuleLoadData");
  at.needed(to.module_function, "cuModuleGetFunction");
  at.needed(to.launch, "cuLaunchKernel");
  at.needed(to.error_name, "cuGetErrorName");
  at.needed(to.error_string, "cuGetErrorString");
  at.optional(to.mem_room, "cuMemGetInfo_v2");
  at.optional(to.module_unload, "cuModuleUnload");
  at.optional(to.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  at.optional(to.primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  to.complete = at.complete();
}

class KnownDriver {
 public:
  KnownDriver(std::initializer_list<const char*> names, DriverKind kind,
              void (*look_up)(void*, CudaDriver&))
      : names_(names), look_up_(look_up) {
    driver_.kind = kind;
  }

  // Null if the process has not loaded it.
  const CudaDriver* get() {
    if (const CudaDriver* const known = found_.load(std::memory_order_acquire)) return known;
    // A name is looked for in many directories, so only after a library was loaded.
    const std::uint64_t loaded = libraries_loaded();
    if (none_in_ == loaded) return nullptr;
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const CudaDriver* const known = found_) return known;
    void* library = nullptr;
    for (const char* const name : names_) {
      if (library == nullptr) library = ::dlopen(name, RTLD_LAZY | RTLD_NOLOAD);
    }
    if (library == nullptr) {
      none_in_ = loaded;
      return nullptr;
    }
    look_up_(library, driver_);
    found_ = &driver_;  // and the library stays
    return &driver_;
  }

 private:
  const std::vector<const char*> names_;
  void (*const look_up_)(void*, CudaDriver&);
  std::atomic<const CudaDriver*> found_{nullptr};
  std::atomic<std::uint64_t> none_in_{0};
  std::mutex mutex_;
  CudaDriver driver_;
};

const CudaDriver* loaded_driver(DriverKind kind) {
  static auto& cuda = *new KnownDriver({"libcuda.so.1"}, DriverKind::cuda, look_up_cuda);
  static auto& hip =
      *new KnownDriver({"libamdhip64.so.6", "libamdhip64.so.7"}, DriverKind::hip, look_up_hip);
  return (kind == DriverKind::cuda ? cuda : hip).get();
}

}  // namespace

const CudaDriver* CudaDriver::find(DriverKind kind) {
  const CudaDriver* const driver = loaded_driver(kind);
  return driver != nullptr && driver->complete ? driver : nullptr;
}

bool CudaDriver::is_in_use(DriverKind kind) {
  if (kind == DriverKind::hip) return find(kind) != nullptr;
  const CudaDriver* const driver = loaded_driver(kind);
  if (driver == nullptr || driver->pointer_get_attribute == nullptr) return false;
  // About an address of ours.
  std::uint64_t type = 0;
  const int answer = driver->pointer_get_attribute(&type, memory_type_attribute,
                                                   reinterpret_cast<std::uintptr_t>(&type));
  return answer != not_initialised && answer != deinitialised;
}

Status CudaDriver::status_of(const char* call, int result) const {
  if (result == 0) return Status::success();
  const char* name = nullptr;
  const char* what = nullptr;
  if (error_name(result, &name) != 0 || name == nullptr) name = "an error that it has no name for";
  if (error_string(result, &what) != 0 || what == nullptr) what = "unknown";
  const std::string its_call = kind == DriverKind::cuda ? call : "hip" + std::string(call + 2);
  const std::string seen = sentence("the GPU's driver answers ", its_call, "() with ", name, " (",
                                    result, ", ", what, ")");
  if (result == out_of_memory) {
    return {Code::no_space, seen + ": free memory of the GPU, or give it smaller arrays"};
  }
  if (result >= capture_first && result <= capture_last) {
    return {Code::wrong_state,
            seen +
                ": a stream of the program is being captured into a graph; call this before "
                "the capture begins, or after it has ended"};
  }
  return {Code::io_error,
          seen +
              ": if a kernel of the program failed before, the driver does nothing more in this "
              "process; the last version is whole, and the program can be started again"};
}

}  // namespace perdure
