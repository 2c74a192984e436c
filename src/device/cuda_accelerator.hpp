// SPDX-License-Identifier: BSD-3-Clause
//
// An accelerator by NVIDIA's driver: one context, a stream of lowest priority that runs beside the
// program's, and the kernels that are loaded in that context, after they were tried.
#pragma once

#include <memory>
#include <vector>

#include "device/accelerator.hpp"
#include "device/loaded_kernels.hpp"

namespace perdure {

class CudaAccelerator final : public Accelerator {
 public:
  // Whose context and device are those of `buffer`, as the driver says.
  static Result<std::unique_ptr<CudaAccelerator>> open(const CudaDriver& driver,
                                                       const std::byte* buffer);
  // The context that the driver names for the buffer; null: it names none.
  static DriverHandle context_of(const CudaDriver& driver, const std::byte* buffer);
  ~CudaAccelerator() override;

  DriverHandle context() const override { return context_; }
  bool has_sums() const override { return tried_ == Tried::right; }
  bool kernels_reach_host() const override { return reaches_host_; }
  std::uint64_t allocation_of(const std::byte* buffer) const override;

  Result<DeviceAddress> allocate(std::uint64_t bytes) override;
  void release(DeviceAddress memory) override;
  Status with_room(const std::function<Status(std::uint64_t room_bytes)>& use) override;
  Status register_host(std::byte* begin, std::uint64_t bytes) override;
  void unregister_host(std::byte* begin) override;

  Result<DriverHandle> make_event() override;
  void drop_event(DriverHandle event) override;
  Status record(DriverHandle event) override;
  Status wait(DriverHandle event) override;
  Status finish() override;
  Status follow(const ProgramStream* stream) override;
  Status hold(const ProgramStream* stream, DriverHandle event) override;

  Status copy_to_host(std::byte* to, DeviceAddress from, std::uint64_t bytes) override;
  Status copy_from_host(DeviceAddress to, const std::byte* from, std::uint64_t bytes) override;
  Status copy_within(DeviceAddress to, DeviceAddress from, std::uint64_t bytes) override;
  Status clear(DeviceAddress to, std::uint64_t bytes) override;

  Status sum(Unit unit, DeviceAddress from, DeviceAddress sums, std::uint64_t units) override;
  Status list_changed(const ChangeTables& tables, std::uint64_t units) override;
  Status store_listed(const ChangeTables& tables, DeviceAddress from, std::byte* to,
                      std::uint64_t unit_bytes) override;

 private:
  class Current;
  class Aside;

  // What came of trying the kernels; there may be no room to do that.
  enum class Tried : std::uint8_t { no_room, wrong, right };

  explicit CudaAccelerator(const CudaDriver& driver) : driver_(driver) {}
  Status begin(const std::byte* buffer);
  Status check_kernels();
  Status launch(DriverHandle kernel, unsigned blocks, void** arguments);

  const CudaDriver& driver_;
  DriverHandle context_ = nullptr;
  int ordinal_ = 0;
  bool retained_ = false;     // the primary context, by us
  bool reads_pages_ = false;  // of the host, as they are: nothing needs to be registered
  bool reaches_host_ = false;
  unsigned processors_ = 1;
  std::vector<DeviceAddress> refused_;  // what the driver did not take back
  DriverHandle stream_ = nullptr;
  DriverHandle ready_ = nullptr;                  // what follow() records
  std::shared_ptr<const LoadedKernels> kernels_;  // null: there are none
  Tried tried_ = Tried::wrong;
};

}  // namespace perdure
