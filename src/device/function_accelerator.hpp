// SPDX-License-Identifier: BSD-3-Clause
//
// An accelerator by functions of the program. It has no kernels, and registers nothing: bytes pass
// through the host ring, where the processor sums them.
//
// One wait is for all that was asked before, so events are nothing more than that. It may tell a
// failure once, to whoever waits: of another array, or in another pool. So failures are counted.
//
// Threads: functions of one context are called by one at a time, whichever pools they serve.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>

#include "device/accelerator.hpp"

namespace perdure {

// Of one context, in all pools of the process.
struct FunctionTurn {
  std::mutex mutex;
  std::atomic<std::uint64_t> failed_waits{0};

  static std::shared_ptr<FunctionTurn> of(const void* context);
};

class FunctionAccelerator final : public Accelerator {
 public:
  explicit FunctionAccelerator(const DeviceFunctions& functions)
      : functions_(functions), turn_(FunctionTurn::of(functions.context)) {}

  DriverHandle context() const override { return nullptr; }
  bool has_sums() const override { return false; }
  bool kernels_reach_host() const override { return false; }
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
  std::uint64_t failed_waits() const override { return turn_->failed_waits; }
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
  const std::shared_ptr<FunctionTurn> turn_;
};

}  // namespace perdure
