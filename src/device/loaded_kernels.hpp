// SPDX-License-Identifier: BSD-3-Clause
//
// Loaded kernels: those of kernels.ptx in one context of the driver. To translate them may take the
// driver 200 ms, so all pools whose arrays are in a context have the same. They go with the last of
// these pools, and nothing of them is left in memory of the device.
//
// Invariants
//   device.K1  Kernels that were loaded into a context that is gone are neither given to a pool nor
//       unloaded: another context may have its handle, and what has theirs is not known. A piece of
//       memory beside them tells, as the driver gives each allocation of a process another number.
//       Where it does not, each pool has its own.
//
// Threads: any; two that ask at once get the same. A child process gets nothing from its parent's
// driver, which answers it with errors. Failure: a driver that can't take them is no error: the
// processor computes checksums.
#pragma once

#include <memory>

#include "device/cuda_driver.hpp"

namespace perdure {

class LoadedKernels {
 public:
  // In the context, which is this thread's. Null: the driver can't take them.
  static std::shared_ptr<const LoadedKernels> of(const CudaDriver& driver, DriverHandle context);
  ~LoadedKernels();  // the context is this thread's, or it is gone
  LoadedKernels(const LoadedKernels&) = delete;
  LoadedKernels& operator=(const LoadedKernels&) = delete;

  DriverHandle block_sums() const { return block_sums_; }
  DriverHandle page_sums() const { return page_sums_; }
  DriverHandle list_changed() const { return list_changed_; }
  DriverHandle store_listed() const { return store_listed_; }

 private:
  explicit LoadedKernels(const CudaDriver& driver) : driver_(driver) {}
  bool load();
  void mark();
  std::uint64_t number_of_mark() const;
  bool can_be_shared() const { return number_ != 0; }
  bool is_here() const { return number_of_mark() == number_; }

  const CudaDriver& driver_;
  DriverHandle module_ = nullptr;
  DriverHandle block_sums_ = nullptr;
  DriverHandle page_sums_ = nullptr;
  DriverHandle list_changed_ = nullptr;
  DriverHandle store_listed_ = nullptr;
  DeviceAddress mark_ = 0;    // memory that goes with the context
  std::uint64_t number_ = 0;  // of that; 0: there is none
};

}  // namespace perdure
