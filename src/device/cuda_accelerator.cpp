// SPDX-License-Identifier: BSD-3-Clause
#include "device/cuda_accelerator.hpp"

#include <algorithm>
#include <limits>

#include "device/kernel_check.hpp"

namespace perdure {
namespace {

// Of cuda.h, which isn't needed to build.
constexpr int multiprocessors_attribute = 16;
constexpr int same_address_attribute =
    91;  // of registered memory: a kernel has it where the host does
constexpr int reads_host_pages_attribute = 100;
constexpr unsigned non_blocking = 1;  // of a stream: the program's default stream is not awaited
constexpr unsigned sleeping = 3;      // of an event: who waits sleeps; and it has no time
constexpr unsigned for_all_and_kernels = 3;  // of a registration: portable, and mapped
constexpr int invalid_handle = 400;          // a result: of another context, or gone
constexpr int is_capturing = 0;              // a status other than this

constexpr unsigned threads_per_block = 256;
// As many thread blocks keep reading at memory speed; storing to the host takes two, and more of
// them would slow the program's own kernels down.
constexpr unsigned blocks_per_processor = 8;
constexpr unsigned storing_blocks = 2;

// What this thread calls is no part of a capture, which the driver would spoil otherwise, on
// whatever thread the program has begun it.
class BesideCaptures {
 public:
  explicit BesideCaptures(const CudaDriver& driver) : driver_(driver), is_on_(exchange()) {}
  ~BesideCaptures() {
    if (is_on_ && !exchange()) (void)exchange();
  }
  BesideCaptures(const BesideCaptures&) = delete;
  BesideCaptures& operator=(const BesideCaptures&) = delete;

 private:
  bool exchange() {
    return driver_.exchange_capture_mode != nullptr && driver_.exchange_capture_mode(&mode_) == 0;
  }

  const CudaDriver& driver_;
  int mode_ = 2;  // CU_STREAM_CAPTURE_MODE_RELAXED; then what it was
  const bool is_on_;
};

}  // namespace

// The context is this thread's until the end of the scope.
class CudaAccelerator::Current {
 public:
  explicit Current(const CudaAccelerator& of)
      : driver_(of.driver_),
        status_(of.driver_.status_of("cuCtxPushCurrent", of.driver_.ctx_push(of.context_))) {}
  ~Current() {
    DriverHandle before = nullptr;
    if (status_.ok()) (void)driver_.ctx_pop(&before);
  }
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  const Status& status() const { return status_; }

 private:
  const CudaDriver& driver_;
  Status status_;
};

// The same, beside captures: for all but what is a piece of work in a stream, or asks a stream.
class CudaAccelerator::Aside {
 public:
  explicit Aside(const CudaAccelerator& of) : current_(of), beside_(of.driver_) {}
  const Status& status() const { return current_.status(); }

 private:
  const Current current_;
  const BesideCaptures beside_;
};

namespace {

Status of_another_gpu() {
  return {Code::invalid_argument,
          "the stream that perdure_stream() named is not one of the GPU, or of the context, that "
          "an array is on: name one that is, or none (PERDURE_STREAM_NONE)"};
}

}  // namespace

DriverHandle CudaAccelerator::context_of(const CudaDriver& driver, const std::byte* buffer) {
  DriverHandle context = nullptr;
  const int result = driver.pointer_get_attribute(&context, context_attribute, address_of(buffer));
  return result == 0 ? context : nullptr;
}

Result<std::unique_ptr<CudaAccelerator>> CudaAccelerator::open(const CudaDriver& driver,
                                                               const std::byte* buffer) {
  std::unique_ptr<CudaAccelerator> made(new CudaAccelerator(driver));
  PERDURE_TRY(made->begin(buffer));
  return made;
}

Status CudaAccelerator::begin(const std::byte* buffer) {
  const CudaDriver& driver = driver_;
  PERDURE_TRY(driver.status_of(
      "cuPointerGetAttribute",
      driver.pointer_get_attribute(&ordinal_, ordinal_attribute, address_of(buffer))));
  context_ = context_of(driver, buffer);
  if (context_ == nullptr) {  // memory that was mapped by hand, or comes from a memory pool
    PERDURE_TRY(driver.status_of("cuDevicePrimaryCtxRetain",
                                 driver.primary_ctx_retain(&context_, ordinal_)));
    retained_ = true;
  }
  const Aside current(*this);
  PERDURE_TRY(current.status());
  int value = 0;
  if (driver.device_get_attribute(&value, multiprocessors_attribute, ordinal_) == 0) {
    processors_ = static_cast<unsigned>(std::max(value, 1));
  }
  value = 0;
  reads_pages_ =
      driver.device_get_attribute(&value, reads_host_pages_attribute, ordinal_) == 0 && value != 0;
  value = 0;
  reaches_host_ =
      reads_pages_ ||
      (driver.device_get_attribute(&value, same_address_attribute, ordinal_) == 0 && value != 0);
  int lowest = 0;
  int highest = 0;
  PERDURE_TRY(driver.status_of("cuCtxGetStreamPriorityRange",
                               driver.ctx_stream_priorities(&lowest, &highest)));
  PERDURE_TRY(driver.status_of("cuStreamCreateWithPriority",
                               driver.stream_create(&stream_, non_blocking, lowest)));
  PERDURE_TRY(driver.status_of("cuEventCreate", driver.event_create(&ready_, sleeping)));
  kernels_ = LoadedKernels::of(driver, context_);
  return kernels_ ? check_kernels() : Status::success();
}

// Those that are wrong here are not used, nor while they can't be checked for want of memory.
Status CudaAccelerator::check_kernels() {
  tried_ = Tried::wrong;
  const auto right = kernels_are_right(*this);
  const bool no_room = !right.ok() && right.status().code() == Code::no_space;
  if (no_room) tried_ = Tried::no_room;
  if (right.ok() && right.value()) tried_ = Tried::right;
  return right.ok() || no_room ? Status::success() : right.status();
}

Status CudaAccelerator::with_room(const std::function<Status(std::uint64_t room_bytes)>& use) {
  const Aside current(*this);
  PERDURE_TRY(current.status());
  if (tried_ == Tried::no_room) PERDURE_TRY(check_kernels());
  std::size_t room = std::numeric_limits<std::size_t>::max();
  std::size_t all = 0;
  if (driver_.mem_room != nullptr) {
    PERDURE_TRY(driver_.status_of("cuMemGetInfo", driver_.mem_room(&room, &all)));
  }
  return use(room);
}

// What the context of the program has become meanwhile, only its own calls report.
CudaAccelerator::~CudaAccelerator() {
  {
    const Aside current(*this);
    if (current.status().ok()) {
      if (stream_ != nullptr) (void)driver_.stream_synchronize(stream_);
      for (const DeviceAddress memory : refused_) (void)driver_.mem_free(memory);
      kernels_.reset();
      if (ready_ != nullptr) (void)driver_.event_destroy(ready_);
      if (stream_ != nullptr) (void)driver_.stream_destroy(stream_);
    }
  }
  if (retained_ && driver_.primary_ctx_release != nullptr) {
    (void)driver_.primary_ctx_release(ordinal_);
  }
}

std::uint64_t CudaAccelerator::allocation_of(const std::byte* buffer) const {
  std::uint64_t type = 0;
  if (driver_.pointer_get_attribute(&type, memory_type_attribute, address_of(buffer)) != 0) {
    return 0;
  }
  constexpr std::uint64_t not_numbered = 1;
  std::uint64_t number = 0;
  const int result =
      driver_.pointer_get_attribute(&number, allocation_attribute, address_of(buffer));
  return result == 0 && number != 0 ? number : not_numbered;
}

Result<DeviceAddress> CudaAccelerator::allocate(std::uint64_t bytes) {
  const Aside current(*this);
  PERDURE_TRY(current.status());
  DeviceAddress at = 0;
  PERDURE_TRY(
      driver_.status_of("cuMemAlloc", driver_.mem_alloc(&at, std::max<std::uint64_t>(bytes, 1))));
  return at;
}

void CudaAccelerator::release(DeviceAddress memory) {
  const Aside current(*this);
  if (current.status().ok() && driver_.mem_free(memory) == 0) return;
  refused_.push_back(memory);  // as while a stream is captured, by a driver that can't go beside it
}

Status CudaAccelerator::register_host(std::byte* begin, std::uint64_t bytes) {
  if (reads_pages_) return Status::success();
  const Aside current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuMemHostRegister",
                           driver_.host_register(begin, bytes, for_all_and_kernels));
}

void CudaAccelerator::unregister_host(std::byte* begin) {
  if (reads_pages_) return;
  const Aside current(*this);
  if (current.status().ok()) (void)driver_.host_unregister(begin);
}

Result<DriverHandle> CudaAccelerator::make_event() {
  const Aside current(*this);
  PERDURE_TRY(current.status());
  DriverHandle event = nullptr;
  PERDURE_TRY(driver_.status_of("cuEventCreate", driver_.event_create(&event, sleeping)));
  return event;
}

void CudaAccelerator::drop_event(DriverHandle event) {
  const Aside current(*this);
  if (current.status().ok()) (void)driver_.event_destroy(event);
}

Status CudaAccelerator::record(DriverHandle event) {
  const Current current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuEventRecord", driver_.event_record(event, stream_));
}

Status CudaAccelerator::wait(DriverHandle event) {
  const Aside current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuEventSynchronize", driver_.event_synchronize(event));
}

Status CudaAccelerator::finish() {
  const Aside current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuStreamSynchronize", driver_.stream_synchronize(stream_));
}

Status CudaAccelerator::follow(const ProgramStream* stream) {
  const Current current(*this);
  PERDURE_TRY(current.status());
  if (stream == nullptr) {
    return driver_.status_of("cuCtxSynchronize", driver_.ctx_synchronize());
  }
  if (stream->kind != driver_.kind) return of_another_gpu();
  int capture = is_capturing;
  PERDURE_TRY(driver_.status_of("cuStreamIsCapturing",
                                driver_.stream_is_capturing(stream->handle, &capture)));
  if (capture != is_capturing) {
    return {Code::wrong_state,
            "the stream that perdure_stream() named is being captured into a graph: commit before "
            "the capture begins, or after it has ended"};
  }
  const int recorded = driver_.event_record(ready_, stream->handle);
  if (recorded == invalid_handle) return of_another_gpu();
  PERDURE_TRY(driver_.status_of("cuEventRecord", recorded));
  return driver_.status_of("cuStreamWaitEvent", driver_.stream_wait_event(stream_, ready_, 0));
}

Status CudaAccelerator::hold(const ProgramStream* stream, DriverHandle event) {
  if (stream == nullptr) return Status::success();
  if (stream->kind != driver_.kind) return of_another_gpu();
  const Current current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuStreamWaitEvent",
                           driver_.stream_wait_event(stream->handle, event, 0));
}

Status CudaAccelerator::copy_to_host(std::byte* to, DeviceAddress from, std::uint64_t bytes) {
  if (bytes == 0) return Status::success();
  const Current current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuMemcpyDtoHAsync", driver_.copy_to_host(to, from, bytes, stream_));
}

Status CudaAccelerator::copy_from_host(DeviceAddress to, const std::byte* from,
                                       std::uint64_t bytes) {
  if (bytes == 0) return Status::success();
  const Current current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuMemcpyHtoDAsync", driver_.copy_from_host(to, from, bytes, stream_));
}

Status CudaAccelerator::copy_within(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) {
  if (bytes == 0) return Status::success();
  const Current current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuMemcpyDtoDAsync", driver_.copy_within(to, from, bytes, stream_));
}

Status CudaAccelerator::clear(DeviceAddress to, std::uint64_t bytes) {
  if (bytes == 0) return Status::success();
  const Current current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuMemsetD8Async", driver_.set_bytes(to, 0, bytes, stream_));
}

Status CudaAccelerator::launch(DriverHandle kernel, unsigned blocks, void** arguments) {
  const Current current(*this);
  PERDURE_TRY(current.status());
  return driver_.status_of("cuLaunchKernel", driver_.launch(kernel, blocks, 1, 1, threads_per_block,
                                                            1, 1, 0, stream_, arguments, nullptr));
}

Status CudaAccelerator::sum(Unit unit, DeviceAddress from, DeviceAddress sums,
                            std::uint64_t units) {
  if (units == 0) return Status::success();
  void* arguments[] = {&from, &sums, &units};
  return launch(unit == Unit::block ? kernels_->block_sums() : kernels_->page_sums(),
                blocks_per_processor * processors_, arguments);
}

Status CudaAccelerator::list_changed(const ChangeTables& tables, std::uint64_t units) {
  PERDURE_TRY(clear(tables.count, sizeof(std::uint32_t)));
  if (units == 0) return Status::success();
  ChangeTables with = tables;
  void* arguments[] = {&with.sums, &with.table, &with.list, &with.count, &units};
  return launch(kernels_->list_changed(), blocks_per_processor * processors_, arguments);
}

Status CudaAccelerator::store_listed(const ChangeTables& tables, DeviceAddress from, std::byte* to,
                                     std::uint64_t unit_bytes) {
  ChangeTables with = tables;
  void* arguments[] = {&from, &to, &with.list, &with.count, &unit_bytes};
  return launch(kernels_->store_listed(), storing_blocks, arguments);
}

}  // namespace perdure
