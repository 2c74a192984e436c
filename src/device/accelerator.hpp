// SPDX-License-Identifier: BSD-3-Clause
//
// Accelerator: a GPU, or another processor with memory of its own, as far as arrays in that memory
// need it. A face of few verbs, so that another maker's driver, or functions of the program, can
// have the same.
//
// What is asked of it is done in the order of the calls, beside the program's own work. follow()
// lets it begin after what the program's stream had done, hold() lets the stream go on after it;
// nothing waits for anything else. The host waits in wait() and finish(), and in follow() where the
// program has named no stream.
//
//   device.X1  What copy_to_host() and store_listed() have stored is in host memory, as if a
//       processor had stored it, when wait() for an event that was recorded after them has
//       returned success. It may still be in a cache.
//   device.X2  A failure is never lost: once anything that was asked for has failed, or a kernel of
//       the program has broken the context, wait() fails.
//   device.X3  A registration is given back before the memory is unmapped (registered_ranges.hpp):
//       the driver would refuse memory to the program later.
//
// Threads: as the pool; wait() from any. Failure: Code::no_space if its memory is full,
// Code::wrong_state while a stream is being captured, else Code::io_error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "base/status.hpp"
#include "device/cuda_driver.hpp"
#include "device/device_functions.hpp"

namespace perdure {

// Places in the memory of the accelerator for what the kernels work with.
struct ChangeTables {
  DeviceAddress sums = 0;   // 8 bytes for each unit, as they are now
  DeviceAddress table = 0;  // the same, as they were
  DeviceAddress list = 0;   // 4 bytes for each: which differ
  DeviceAddress count = 0;  // 4 bytes: how many do
};

class Accelerator {
 public:
  Accelerator() = default;
  Accelerator(const Accelerator&) = delete;
  Accelerator& operator=(const Accelerator&) = delete;
  virtual ~Accelerator() = default;

  // Whose memory it is: one for each context of the driver.
  virtual DriverHandle context() const = 0;
  // It can compute the format's own checksums: XXH3 of blocks of 64 KiB, and of pages of 4 KiB.
  virtual bool has_sums() const = 0;
  // Its kernels have registered memory of the host at the host's own addresses.
  virtual bool kernels_reach_host() const = 0;
  // Null: a driver, which can be asked what is at an address. Else only the program knows that.
  virtual const DeviceFunctions* functions() const { return nullptr; }
  // Which of all allocations there ever were has the byte; 0: it is not memory that it has. Another
  // allocation at the same address has another number, where the driver numbers them.
  virtual std::uint64_t allocation_of(const std::byte* buffer) const = 0;

  virtual Result<DeviceAddress> allocate(std::uint64_t bytes) = 0;
  virtual void release(DeviceAddress memory) = 0;
  // Calls `use` with how much of its memory is free, or the most where only allocate() tells; if
  // there was no room to try the kernels, they are tried before. Spoils no capture of a stream.
  virtual Status with_room(const std::function<Status(std::uint64_t room_bytes)>& use) {
    return use(std::numeric_limits<std::uint64_t>::max());
  }
  // Whole pages of the host, which it can reach at full speed; kernels_reach_host().
  virtual Status register_host(std::byte* begin, std::uint64_t bytes) = 0;
  virtual void unregister_host(std::byte* begin) = 0;

  virtual Result<DriverHandle> make_event() = 0;
  virtual void drop_event(DriverHandle event) = 0;
  virtual Status record(DriverHandle event) = 0;
  virtual Status wait(DriverHandle event) = 0;
  // For all that was asked of it, whatever has failed: nothing is stored to the host after that.
  virtual Status finish() = 0;
  // How many waits have failed, whoever asked, where a failure is reported once to whoever waits.
  virtual std::uint64_t failed_waits() const { return 0; }
  // null: no stream was named, and all that the program asked of the context is waited for.
  virtual Status follow(const ProgramStream* stream) = 0;
  virtual Status hold(const ProgramStream* stream, DriverHandle event) = 0;

  virtual Status copy_to_host(std::byte* to, DeviceAddress from, std::uint64_t bytes) = 0;
  virtual Status copy_from_host(DeviceAddress to, const std::byte* from, std::uint64_t bytes) = 0;
  virtual Status copy_within(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) = 0;
  virtual Status clear(DeviceAddress to, std::uint64_t bytes) = 0;

  // Of whole blocks of 64 KiB or pages of 4 KiB.
  enum class Unit : std::uint8_t { block, page };
  static constexpr std::uint64_t bytes_of(Unit unit) {
    return unit == Unit::block ? std::uint64_t{64} << 10U : std::uint64_t{4} << 10U;
  }
  virtual Status sum(Unit unit, DeviceAddress from, DeviceAddress sums, std::uint64_t units) = 0;
  // What differs from the table is stored there, and goes on the list.
  virtual Status list_changed(const ChangeTables& tables, std::uint64_t units) = 0;
  // The listed units go to the same places of `to`, which is registered; kernels_reach_host().
  virtual Status store_listed(const ChangeTables& tables, DeviceAddress from, std::byte* to,
                              std::uint64_t unit_bytes) = 0;
};

inline DeviceAddress address_of(const std::byte* buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer);
}

// Memory of an accelerator that is given back.
class AcceleratorMemory {
 public:
  AcceleratorMemory() = default;
  static Result<AcceleratorMemory> make(Accelerator& of, std::uint64_t bytes) {
    AcceleratorMemory made;
    PERDURE_TRY_ASSIGN(made.at_, of.allocate(bytes));
    made.of_ = &of;
    return made;
  }
  AcceleratorMemory(AcceleratorMemory&& other) noexcept { *this = std::move(other); }
  AcceleratorMemory& operator=(AcceleratorMemory&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(at_, other.at_);
    return *this;
  }
  ~AcceleratorMemory() {
    if (of_ != nullptr) of_->release(at_);
  }
  AcceleratorMemory(const AcceleratorMemory&) = delete;
  AcceleratorMemory& operator=(const AcceleratorMemory&) = delete;

  bool is_there() const { return of_ != nullptr; }
  DeviceAddress at() const { return at_; }

 private:
  Accelerator* of_ = nullptr;
  DeviceAddress at_ = 0;
};

// The same of an event.
class AcceleratorEvent {
 public:
  AcceleratorEvent() = default;
  static Result<AcceleratorEvent> make(Accelerator& of) {
    AcceleratorEvent made;
    PERDURE_TRY_ASSIGN(made.event_, of.make_event());
    made.of_ = &of;
    return made;
  }
  AcceleratorEvent(AcceleratorEvent&& other) noexcept { *this = std::move(other); }
  AcceleratorEvent& operator=(AcceleratorEvent&& other) noexcept {
    std::swap(of_, other.of_);
    std::swap(event_, other.event_);
    return *this;
  }
  ~AcceleratorEvent() {
    if (of_ != nullptr) of_->drop_event(event_);
  }
  AcceleratorEvent(const AcceleratorEvent&) = delete;
  AcceleratorEvent& operator=(const AcceleratorEvent&) = delete;

  DriverHandle handle() const { return event_; }

 private:
  Accelerator* of_ = nullptr;
  DriverHandle event_ = nullptr;
};

}  // namespace perdure
