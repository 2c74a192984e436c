// SPDX-License-Identifier: BSD-3-Clause
//
// A CUDA driver on host memory, for tests without a GPU: a library of the driver's own name that
// exports its calls. All that is asked for is done at once, in the order of the calls.
//
// Threads: any; one lock. Failure: the codes of the real driver.
#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <vector>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace {

using Result = int;
using DevicePointer = std::uint64_t;
enum : Result {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialised = 3,
  invalid_device = 101,
  invalid_context = 201,
  invalid_handle = 400,
  not_found = 500,
  not_ready = 600,
  already_registered = 712,
  not_registered = 713,
};
enum MemoryType { of_host = 1, of_device = 2 };

struct Context {
  int device = 0;
  std::size_t retained = 0;
};
struct Stream {
  Context* context;
  bool capturing = false;
};
struct Event {
  Context* context;
};
enum class Kernel : std::uint8_t { block_sums, page_sums, list_changed, store };
struct Range {
  std::size_t size_bytes;
  MemoryType type;
  bool managed;
  bool registered;
  Context* context;
};

struct Driver {
  std::recursive_mutex lock;
  bool initialised = false;
  Context primary;
  std::map<std::uintptr_t, Range> ranges;
  std::size_t device_bytes = 0;
};
Driver& driver() {
  static Driver the_driver;
  return the_driver;
}
thread_local std::vector<Context*> current;

std::size_t device_bytes_max() {
  const char* const wanted = std::getenv("FAKE_CUDA_BYTES");
  return wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : std::size_t{1} << 30U;
}

using Locked = std::lock_guard<std::recursive_mutex>;

Context* here() {
  return current.empty() ? nullptr : current.back();
}
Result state() {
  if (!driver().initialised) return not_initialised;
  return here() == nullptr ? invalid_context : success;
}

const std::pair<const std::uintptr_t, Range>* range_of(std::uintptr_t at) {
  auto after = driver().ranges.upper_bound(at);
  if (after == driver().ranges.begin()) return nullptr;
  --after;
  return at - after->first < after->second.size_bytes ? &*after : nullptr;
}

Result allocate(void** at, std::size_t size_bytes, Range range) {
  if (const Result wrong = state(); wrong != success) return wrong;
  if (size_bytes == 0) return invalid_value;
  if (range.type == of_device && driver().device_bytes + size_bytes > device_bytes_max()) {
    return out_of_memory;
  }
  void* const got =
      ::mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) return out_of_memory;
  if (range.type == of_device) driver().device_bytes += size_bytes;
  range.size_bytes = size_bytes;
  range.context = here();
  driver().ranges[reinterpret_cast<std::uintptr_t>(got)] = range;
  *at = got;
  return success;
}

Result release(std::uintptr_t at, MemoryType type) {
  if (const Result wrong = state(); wrong != success) return wrong;
  if (at == 0) return success;
  const auto found = driver().ranges.find(at);
  if (found == driver().ranges.end() || found->second.registered) return invalid_value;
  if (found->second.type != type) return invalid_value;
  ::munmap(reinterpret_cast<void*>(at), found->second.size_bytes);
  if (type == of_device) driver().device_bytes -= found->second.size_bytes;
  driver().ranges.erase(found);
  return success;
}

template <typename T>
T* at_address(DevicePointer at) {
  return reinterpret_cast<T*>(at);  // NOLINT(performance-no-int-to-ptr)
}

std::uint64_t sum_of(const char* bytes, std::size_t size_bytes) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at < size_bytes; at += 32768) {
    sum = XXH3_64bits_withSeed(bytes + at, std::min<std::size_t>(32768, size_bytes - at), sum);
  }
  return sum;
}

template <typename T>
T argument(void** arguments, int which) {
  T value;
  std::memcpy(&value, arguments[which], sizeof value);
  return value;
}

void run(Kernel kernel, void** a) {
  if (kernel == Kernel::block_sums || kernel == Kernel::page_sums) {
    const std::size_t unit = kernel == Kernel::block_sums ? 65536 : 4096;
    const auto* const from = at_address<char>(argument<DevicePointer>(a, 0));
    auto* const sums = at_address<std::uint64_t>(argument<DevicePointer>(a, 1));
    for (std::uint64_t i = 0; i < argument<std::uint64_t>(a, 2); i++) {
      sums[i] = sum_of(from + i * unit, unit);
    }
    return;
  }
  auto* const list = at_address<std::uint32_t>(argument<DevicePointer>(a, 2));
  auto* const count = at_address<std::uint32_t>(argument<DevicePointer>(a, 3));
  if (kernel == Kernel::list_changed) {
    const auto* const sums = at_address<std::uint64_t>(argument<DevicePointer>(a, 0));
    auto* const table = at_address<std::uint64_t>(argument<DevicePointer>(a, 1));
    for (std::uint64_t i = 0; i < argument<std::uint64_t>(a, 4); i++) {
      if (table[i] == sums[i]) continue;
      table[i] = sums[i];
      list[(*count)++] = static_cast<std::uint32_t>(i);
    }
    return;
  }
  const auto* const from = at_address<char>(argument<DevicePointer>(a, 0));
  auto* const to = at_address<char>(argument<DevicePointer>(a, 1));
  const auto unit = argument<std::uint64_t>(a, 4);
  for (std::uint32_t i = 0; i < *count; i++) {
    std::memcpy(to + list[i] * unit, from + list[i] * unit, unit);
  }
}

Result copy(void* to, const void* from, std::size_t size_bytes) {
  const Locked locked(driver().lock);
  if (const Result wrong = state(); wrong != success) return wrong;
  std::memmove(to, from, size_bytes);
  return success;
}

}  // namespace

#define CUDA_CALL extern "C" __attribute__((visibility("default"))) Result

CUDA_CALL cuInit(unsigned) {
  const Locked locked(driver().lock);
  driver().initialised = true;
  return success;
}
CUDA_CALL cuDriverGetVersion(int* version) {
  *version = 13000;
  return success;
}
CUDA_CALL cuDeviceGet(int* device, int ordinal) {
  if (ordinal != 0) return invalid_device;
  *device = ordinal;
  return driver().initialised ? success : not_initialised;
}
CUDA_CALL cuDeviceGetCount(int* count) {
  *count = 1;
  return driver().initialised ? success : not_initialised;
}
CUDA_CALL cuDeviceGetAttribute(int* value, int attribute, int device) {
  if (device != 0) return invalid_device;
  const std::map<int, int> values = {{1, 1024}, {10, 32}, {16, 4}, {40, 2}, {41, 1},
                                     {75, 7},   {83, 1},  {89, 1}, {99, 1}, {113, 1}};
  const auto found = values.find(attribute);
  *value = found == values.end() ? 0 : found->second;
  return driver().initialised ? success : not_initialised;
}
CUDA_CALL cuDevicePrimaryCtxRetain(Context** context, int device) {
  const Locked locked(driver().lock);
  if (!driver().initialised) return not_initialised;
  if (device != 0) return invalid_device;
  driver().primary.retained++;
  *context = &driver().primary;
  return success;
}
CUDA_CALL cuDevicePrimaryCtxRelease_v2(int device) {
  const Locked locked(driver().lock);
  if (device != 0) return invalid_device;
  if (driver().primary.retained == 0) return invalid_context;
  driver().primary.retained--;
  return success;
}
CUDA_CALL cuCtxSetCurrent(Context* context) {
  if (!driver().initialised) return not_initialised;
  if (!current.empty()) current.pop_back();
  if (context != nullptr) current.push_back(context);
  return success;
}
CUDA_CALL cuCtxGetCurrent(Context** context) {
  if (!driver().initialised) return not_initialised;
  *context = here();
  return success;
}
CUDA_CALL cuCtxPushCurrent_v2(Context* context) {
  if (context == nullptr) return invalid_context;
  current.push_back(context);
  return success;
}
CUDA_CALL cuCtxPopCurrent_v2(Context** context) {
  if (current.empty()) return invalid_context;
  if (context != nullptr) *context = current.back();
  current.pop_back();
  return success;
}
CUDA_CALL cuCtxSynchronize() {
  return state();
}
CUDA_CALL cuCtxGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -5;
  return state();
}

CUDA_CALL cuMemAlloc_v2(DevicePointer* at, std::size_t size_bytes) {
  const Locked locked(driver().lock);
  return allocate(reinterpret_cast<void**>(at), size_bytes, {0, of_device, false, false, nullptr});
}
CUDA_CALL cuMemAllocManaged(DevicePointer* at, std::size_t size_bytes, unsigned) {
  const Locked locked(driver().lock);
  return allocate(reinterpret_cast<void**>(at), size_bytes, {0, of_device, true, false, nullptr});
}
CUDA_CALL cuMemHostAlloc(void** at, std::size_t size_bytes, unsigned) {
  const Locked locked(driver().lock);
  return allocate(at, size_bytes, {0, of_host, false, false, nullptr});
}
CUDA_CALL cuMemFree_v2(DevicePointer at) {
  const Locked locked(driver().lock);
  return release(at, of_device);
}
CUDA_CALL cuMemFreeHost(void* at) {
  const Locked locked(driver().lock);
  return release(reinterpret_cast<std::uintptr_t>(at), of_host);
}
CUDA_CALL cuMemGetInfo_v2(std::size_t* free_bytes, std::size_t* all_bytes) {
  const Locked locked(driver().lock);
  *all_bytes = device_bytes_max();
  *free_bytes = *all_bytes - driver().device_bytes;
  return state();
}
CUDA_CALL cuMemHostRegister_v2(void* at, std::size_t size_bytes, unsigned) {
  const Locked locked(driver().lock);
  if (const Result wrong = state(); wrong != success) return wrong;
  const auto begin = reinterpret_cast<std::uintptr_t>(at);
  if (at == nullptr || size_bytes == 0) return invalid_value;
  const auto after = driver().ranges.lower_bound(begin + size_bytes);
  if (after != driver().ranges.begin()) {
    const auto before = std::prev(after);
    if (before->first + before->second.size_bytes > begin) return already_registered;
  }
  driver().ranges[begin] = {size_bytes, of_host, false, true, here()};
  return success;
}
CUDA_CALL cuMemHostUnregister(void* at) {
  const Locked locked(driver().lock);
  if (const Result wrong = state(); wrong != success) return wrong;
  const auto found = driver().ranges.find(reinterpret_cast<std::uintptr_t>(at));
  if (found == driver().ranges.end() || !found->second.registered) return not_registered;
  driver().ranges.erase(found);
  return success;
}
CUDA_CALL cuPointerGetAttribute(void* value, int attribute, DevicePointer at) {
  const Locked locked(driver().lock);
  if (!driver().initialised) return not_initialised;
  const auto* const found = range_of(at);
  if (found == nullptr) return invalid_value;
  switch (attribute) {
    case 1:
      *static_cast<Context**>(value) = found->second.context;
      return success;
    case 2:
      *static_cast<unsigned*>(value) = found->second.type;
      return success;
    case 3:
      *static_cast<DevicePointer*>(value) = at;
      return success;
    case 8:
      *static_cast<unsigned*>(value) = found->second.managed ? 1 : 0;
      return success;
    case 9:
      *static_cast<int*>(value) = 0;
      return success;
    case 11:
      *static_cast<std::uintptr_t*>(value) = found->first;
      return success;
    case 12:
      *static_cast<std::size_t*>(value) = found->second.size_bytes;
      return success;
    default:
      return invalid_value;
  }
}

CUDA_CALL cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, std::size_t n, Stream*) {
  return copy(at_address<void>(to), at_address<void>(from), n);
}
CUDA_CALL cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, std::size_t n, Stream*) {
  return copy(to, at_address<void>(from), n);
}
CUDA_CALL cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, std::size_t n, Stream*) {
  return copy(at_address<void>(to), from, n);
}
CUDA_CALL cuMemcpyDtoH_v2(void* to, DevicePointer from, std::size_t n) {
  return copy(to, at_address<void>(from), n);
}
CUDA_CALL cuMemcpyHtoD_v2(DevicePointer to, const void* from, std::size_t n) {
  return copy(at_address<void>(to), from, n);
}
CUDA_CALL cuMemsetD8Async(DevicePointer to, unsigned char byte, std::size_t n, Stream*) {
  const Locked locked(driver().lock);
  if (const Result wrong = state(); wrong != success) return wrong;
  std::memset(at_address<void>(to), byte, n);
  return success;
}

CUDA_CALL cuStreamCreateWithPriority(Stream** stream, unsigned, int) {
  if (const Result wrong = state(); wrong != success) return wrong;
  *stream = std::make_unique<Stream>(Stream{here()}).release();
  return success;
}
CUDA_CALL cuStreamCreate(Stream** stream, unsigned flags) {
  return cuStreamCreateWithPriority(stream, flags, 0);
}
CUDA_CALL cuStreamDestroy_v2(Stream* stream) {
  if (stream == nullptr) return invalid_handle;
  const std::unique_ptr<Stream> gone(stream);
  return success;
}
CUDA_CALL cuStreamSynchronize(Stream*) {
  return state();
}
CUDA_CALL cuStreamQuery(Stream*) {
  return state();
}
CUDA_CALL cuStreamGetCtx(Stream* stream, Context** context) {
  *context = stream == nullptr ? here() : stream->context;
  return state();
}
CUDA_CALL cuStreamWaitEvent(Stream*, Event* event, unsigned) {
  return event == nullptr ? static_cast<Result>(invalid_handle) : state();
}
CUDA_CALL cuStreamIsCapturing(Stream* stream, int* status) {
  *status = stream != nullptr && stream->capturing ? 1 : 0;
  return state();
}
CUDA_CALL cuStreamBeginCapture_v2(Stream* stream, int) {
  if (stream == nullptr || stream->capturing) return invalid_value;
  stream->capturing = true;
  return state();
}
CUDA_CALL cuStreamEndCapture(Stream* stream, void** graph) {
  if (stream == nullptr || !stream->capturing) return invalid_value;
  stream->capturing = false;
  *graph = stream;
  return state();
}
CUDA_CALL cuEventCreate(Event** event, unsigned) {
  if (const Result wrong = state(); wrong != success) return wrong;
  *event = std::make_unique<Event>(Event{here()}).release();
  return success;
}
CUDA_CALL cuEventDestroy_v2(Event* event) {
  if (event == nullptr) return invalid_handle;
  const std::unique_ptr<Event> gone(event);
  return success;
}
CUDA_CALL cuEventRecord(Event* event, Stream*) {
  return event == nullptr ? static_cast<Result>(invalid_handle) : state();
}
CUDA_CALL cuEventSynchronize(Event* event) {
  return event == nullptr ? static_cast<Result>(invalid_handle) : state();
}
CUDA_CALL cuEventQuery(Event* event) {
  return event == nullptr ? static_cast<Result>(invalid_handle) : state();
}

CUDA_CALL cuModuleLoadData(const void** module, const void* text) {
  if (const Result wrong = state(); wrong != success) return wrong;
  *module = text;
  return success;
}
CUDA_CALL cuModuleUnload(const void*) {
  return state();
}
CUDA_CALL cuModuleGetFunction(const Kernel** function, const void*, const char* name) {
  static const std::map<std::string_view, Kernel> kernels = {
      {"perdure_block_sums", Kernel::block_sums},
      {"perdure_page_sums", Kernel::page_sums},
      {"perdure_list_changed", Kernel::list_changed},
      {"perdure_store", Kernel::store}};
  const auto found = kernels.find(name);
  if (found == kernels.end()) return not_found;
  *function = &found->second;
  return state();
}
CUDA_CALL cuLaunchKernel(const Kernel* function, unsigned, unsigned, unsigned, unsigned, unsigned,
                         unsigned, unsigned, Stream*, void** arguments, void**) {
  const Locked locked(driver().lock);
  if (const Result wrong = state(); wrong != success) return wrong;
  if (function == nullptr) return invalid_handle;
  run(*function, arguments);
  return success;
}
CUDA_CALL cuGetErrorName(Result code, const char** name) {
  *name = code == success ? "CUDA_SUCCESS" : "CUDA_ERROR";
  return success;
}
CUDA_CALL cuGetErrorString(Result code, const char** sentence) {
  *sentence = code == success ? "no error" : "an error of the fake driver";
  return success;
}
