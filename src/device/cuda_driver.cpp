// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda_driver.hpp"

#include <dlfcn.h>
#include <link.h>

#include <atomic>
#include <mutex>
#include <string>

namespace perdure {
namespace {

constexpr int out_of_memory = 2;
constexpr int not_initialised = 3;
constexpr int deinitialised = 4;
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

class LookUp {
 public:
  explicit LookUp(void* library) : library_(library) {}
  template <typename Call>
  void optional(Call*& call, const char* name) const {
    call = reinterpret_cast<Call*>(::dlsym(library_, name));
  }
  template <typename Call>
  void needed(Call*& call, const char* name) {
    optional(call, name);
    if (call == nullptr) complete_ = false;
  }
  bool complete() const { return complete_; }

 private:
  void* library_;
  bool complete_ = true;
};

void look_up(void* library, CudaDriver& to) {
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
  at.optional(to.module_unload, "cuModuleUnload");
  at.optional(to.exchange_capture_mode, "cuThreadExchangeStreamCaptureMode");
  at.optional(to.primary_ctx_release, "cuDevicePrimaryCtxRelease_v2");
  to.complete = at.complete();
}

// Null if the process has not loaded it.
const CudaDriver* loaded_driver() {
  static std::atomic<const CudaDriver*> found{nullptr};
  static std::atomic<std::uint64_t> none_in{0};
  if (const CudaDriver* const known = found.load(std::memory_order_acquire)) return known;
  // A name is looked for in many directories, so only after a library was loaded.
  const std::uint64_t loaded = libraries_loaded();
  if (none_in == loaded) return nullptr;
  static std::mutex mutex;
  static CudaDriver driver;
  const std::lock_guard<std::mutex> lock(mutex);
  if (const CudaDriver* const known = found) return known;
  void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    none_in = loaded;
    return nullptr;
  }
  look_up(library, driver);
  found = &driver;  // and the library stays
  return &driver;
}

}  // namespace

const CudaDriver* CudaDriver::find() {
  const CudaDriver* const driver = loaded_driver();
  return driver != nullptr && driver->complete ? driver : nullptr;
}

bool CudaDriver::is_in_use() {
  const CudaDriver* const driver = loaded_driver();
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
  const std::string seen =
      sentence("the GPU's driver answers ", call, "() with ", name, " (", result, ", ", what, ")");
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
