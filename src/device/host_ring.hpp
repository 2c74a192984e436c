// SPDX-License-Identifier: BSD-3-Clause
//
// Host ring: two places in the host's memory through which bytes of an accelerator pass where they
// can't go straight to the pool: one is filled while the other is taken.
//
// Threads: one at a time. Failure: memory that can't be registered is only slower.
#pragma once

#include <sys/mman.h>

#include <array>
#include <memory>

#include "device/accelerator.hpp"

namespace perdure {

class HostRing {
 public:
  static constexpr std::uint64_t slot_bytes = std::uint64_t{8} << 20U;

  static Result<std::unique_ptr<HostRing>> make(Accelerator& accelerator);
  ~HostRing();
  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;

  // take(begin, at, count), returning a Status, for each piece of `bytes` bytes from `from` on; at
  // multiples of slot_bytes. When it has returned, all bytes have been taken, or it failed.
  template <typename Take>
  Status pass(DeviceAddress from, std::uint64_t bytes, const Take& take) {
    const std::uint64_t pieces = (bytes + slot_bytes - 1) / slot_bytes;
    const auto count_of = [bytes](std::uint64_t piece) {
      return std::min(slot_bytes, bytes - piece * slot_bytes);
    };
    if (pieces != 0) PERDURE_TRY(fill(0, from, count_of(0)));
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
      const std::uint64_t next = piece + 1;
      if (next < pieces) PERDURE_TRY(fill(next % 2, from + next * slot_bytes, count_of(next)));
      PERDURE_TRY(accelerator_.wait(filled_[piece % 2].handle()));
      PERDURE_TRY(take(piece * slot_bytes, slots_ + piece % 2 * slot_bytes, count_of(piece)));
    }
    return Status::success();
  }

 private:
  explicit HostRing(Accelerator& accelerator) : accelerator_(accelerator) {}
  Status fill(std::uint64_t slot, DeviceAddress from, std::uint64_t bytes) {
    PERDURE_TRY(accelerator_.copy_to_host(slots_ + slot * slot_bytes, from, bytes));
    return accelerator_.record(filled_[slot].handle());
  }

  Accelerator& accelerator_;
  std::byte* slots_ = nullptr;
  bool registered_ = false;
  std::array<AcceleratorEvent, 2> filled_;
};

}  // namespace perdure
