// SPDX-License-Identifier: BSD-3-Clause
#include "device/accelerators.hpp"

#include "device/cuda_accelerator.hpp"
#include "device/function_accelerator.hpp"

namespace perdure {
namespace {

// Of cuda.h.
constexpr int is_managed_attribute = 8;
constexpr std::uint64_t host_type = 1;
constexpr int unknown_pointer = 1;

// 0 where the driver says nothing.
std::uint64_t ask(const CudaDriver& driver, int attribute, DeviceAddress at) {
  std::uint64_t answer = 0;
  return driver.pointer_get_attribute(&answer, attribute, at) == 0 ? answer : 0;
}

// An allocation may be one of several that were mapped side by side.
Status check_whole(const CudaDriver& driver, DeviceAddress first, std::uint64_t bytes) {
  for (DeviceAddress at = first; at < first + bytes;) {
    const DeviceAddress start = ask(driver, range_start_attribute, at);
    const DeviceAddress end = start + ask(driver, range_size_attribute, at);
    if (start <= at && end > at) {
      at = end;
      continue;
    }
    return Status(Code::invalid_argument, "its buffer of ", bytes, " bytes ends after ", at - first,
                  " in the memory of the GPU: give one that is as large as the array");
  }
  return Status::success();
}

struct Memory {
  const CudaDriver* driver = nullptr;  // that knows it
  MemoryKind kind = MemoryKind::host;
};

Memory memory_at(const std::byte* buffer) {
  for (const DriverKind each : {DriverKind::cuda, DriverKind::hip}) {
    const CudaDriver* const driver = CudaDriver::find(each);
    if (driver == nullptr) continue;
    const std::uint64_t type = ask(*driver, memory_type_attribute, address_of(buffer));
    if (type == 0) continue;
    if (ask(*driver, is_managed_attribute, address_of(buffer)) != 0) {
      return {driver, MemoryKind::managed};
    }
    return {driver, type == host_type ? MemoryKind::pinned : MemoryKind::device};
  }
  return {};
}

}  // namespace

MemoryKind kind_of(const std::byte* buffer) {
  return memory_at(buffer).kind;
}

Status check_of_host(const std::byte* buffer) {
  for (const DriverKind each : {DriverKind::cuda, DriverKind::hip}) {
    const CudaDriver* const driver = CudaDriver::find(each);
    if (driver == nullptr) continue;
    std::uint64_t type = 0;
    const int answer =
        driver->pointer_get_attribute(&type, memory_type_attribute, address_of(buffer));
    if (answer == unknown_pointer || answer == not_initialised || answer == deinitialised) continue;
    PERDURE_TRY(driver->status_of("cuPointerGetAttribute", answer));
    if (type == 0) continue;
    return {Code::io_error,
            "the GPU's driver did not say at once that the elements are in its memory; call again"};
  }
  return Status::success();
}

Accelerators::Accelerators() = default;
Accelerators::~Accelerators() {
  for (const Known& known : known_) (void)known.accelerator->finish();
  registered_.give_back();
  for (Known& known : known_) known.ring.reset();
}

Result<Accelerator*> Accelerators::of(const std::byte* buffer, std::uint64_t bytes,
                                      MemoryKind* kind) {
  const Memory memory = buffer == nullptr ? Memory() : memory_at(buffer);
  if (kind != nullptr) *kind = memory.kind;
  if (memory.driver == nullptr) return nullptr;
  const CudaDriver& driver = *memory.driver;
  if (memory.kind == MemoryKind::device)
    PERDURE_TRY(check_whole(driver, address_of(buffer), bytes));
  const DriverHandle named = CudaAccelerator::context_of(driver, buffer);
  for (const Known& known : known_) {
    if (named != nullptr && known.named == named) return known.accelerator.get();
  }
  PERDURE_TRY_ASSIGN(auto made, CudaAccelerator::open(driver, buffer));
  for (const Known& known : known_) {  // the device's own context, which is not named
    if (known.accelerator->context() == made->context()) return known.accelerator.get();
  }
  known_.push_back({std::move(made), named, nullptr});
  return known_.back().accelerator.get();
}

Accelerator* Accelerators::by(const DeviceFunctions& functions) {
  for (const Known& known : known_) {
    const DeviceFunctions* const had = known.accelerator->functions();
    if (had != nullptr && *had == functions) return known.accelerator.get();
  }
  known_.push_back({std::make_unique<FunctionAccelerator>(functions), nullptr, nullptr});
  return known_.back().accelerator.get();
}

Result<HostRing*> Accelerators::ring_of(Accelerator& accelerator, std::uint64_t unit_bytes) {
  for (Known& known : known_) {
    if (known.accelerator.get() != &accelerator) continue;
    if (!known.ring) {
      PERDURE_TRY_ASSIGN(known.ring, HostRing::make(accelerator, unit_bytes));
    }
    return known.ring.get();
  }
  PERDURE_ASSERT(false);
  return nullptr;
}

}  // namespace perdure
