// SPDX-License-Identifier: BSD-3-Clause
//
// An accelerator by functions of the program. It has no kernels, and registers nothing: bytes pass
// through the host ring, where the processor sums them.
//
// One wait is for all that was asked before, so events are nothing more than that. The program's
// functions are called by one thread at a time.
#pragma once

#include <mutex>

#include "device/accelerator.hpp"

namespace perdure {

class FunctionAccelerator final : public Accelerator {
 public:
  explicit FunctionAccelerator(const DeviceFunctions& functions) : functions_(functions) {}

  DriverHandle context() const override { return nullptr; }
  bool has_sums() const override { return false; }
  const DeviceFunctions* functions() const override { return &functions_; }
  std::uint64_t allocation_of(const std::byte*) const override { return 1; }

  Result<DeviceAddress> allocate(std::uint64_t bytes) override;
  void release(DeviceAddress memory) override;
  Status register_host(std::byte* begin, std::uint64_t bytes) override;
  void unregister_host(std::byte*) override {}

  Result<DriverHandle> make_event() override { return DriverHandle{}; }
  void drop_event(DriverHandle) override {}
  Status record(DriverHandle) override { return Status::success(); }
  Status wait(DriverHandle) override { return finish(); }
  Status finish() override;
  // Whatever stream is named: they know the program's queue themselves.
  Status follow(const ProgramStream*) override;
  Status hold(const ProgramStream*, DriverHandle) override;

  Status copy_to_host(std::byte* to, DeviceAddress from, std::uint64_t bytes) override;
  Status copy_from_host(DeviceAddress to, const std::byte* from, std::uint64_t bytes) override;
  Status copy_within(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) override;
  Status clear(DeviceAddress to, std::uint64_t bytes) override;

  Status sum(Unit, DeviceAddress, DeviceAddress, std::uint64_t) override;
  Status list_changed(const ChangeTables&, std::uint64_t) override;
  Status store_listed(const ChangeTables&, DeviceAddress, std::byte*, std::uint64_t) override;

 private:
  Status call(int (*function)(void*), const char* name);
  Status copy(void* to, const void* from, std::uint64_t bytes, CopyDirection direction);

  const DeviceFunctions functions_;
  std::mutex mutex_;
};

}  // namespace perdure
