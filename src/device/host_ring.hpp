// SPDX-License-Identifier: BSD-3-Clause
//
// Host ring: two places in the host's memory through which bytes of an accelerator pass where they
// can't go straight to or from the pool: one is filled while the other is emptied.
//
// Threads: one at a time. Failure: memory that can't be registered is only slower.
#pragma once

#include <algorithm>
#include <array>
#include <memory>

#include "device/accelerator.hpp"

namespace perdure {

// Memory of the host that an accelerator reaches at full speed, if it can be registered.
class PinnedMemory {
 public:
  PinnedMemory() = default;
  static Result<PinnedMemory> make(Accelerator& accelerator, std::uint64_t bytes);
  PinnedMemory(PinnedMemory&& other) noexcept { *this = std::move(other); }
  PinnedMemory& operator=(PinnedMemory&& other) noexcept;
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  std::byte* at() const { return at_; }

 private:
  Accelerator* by_ = nullptr;  // null: it is not registered
  std::byte* at_ = nullptr;
  std::uint64_t bytes_ = 0;
};

class HostRing {
 public:
  // Of places that hold whole units: 8 MiB, or what a larger unit needs.
  static Result<std::unique_ptr<HostRing>> make(Accelerator& accelerator, std::uint64_t unit_bytes);
  HostRing(const HostRing&) = delete;
  HostRing& operator=(const HostRing&) = delete;

  // take(begin, at, count), returning a Status, for each piece of `bytes` bytes from `from` on; at
  // multiples of a place's size. When it has returned, all bytes have been taken, or it failed.
  template <typename Take>
  Status pass(DeviceAddress from, std::uint64_t bytes, const Take& take) {
    const std::uint64_t pieces = (bytes + slot_bytes_ - 1) / slot_bytes_;
    const auto fill = [&](std::uint64_t piece) -> Status {
      const std::uint64_t begin = piece * slot_bytes_;
      PERDURE_TRY(accelerator_.copy_to_host(slot(piece), from + begin,
                                            std::min(slot_bytes_, bytes - begin)));
      return accelerator_.record(passed_[piece % 2].handle());
    };
    if (pieces != 0) PERDURE_TRY(fill(0));
    for (std::uint64_t piece = 0; piece < pieces; ++piece) {
      PERDURE_TRY(accelerator_.wait(passed_[piece % 2].handle()));
      if (piece + 1 < pieces) PERDURE_TRY(fill(piece + 1));
      const std::uint64_t begin = piece * slot_bytes_;
      PERDURE_TRY(take(begin, slot(piece), std::min(slot_bytes_, bytes - begin)));
    }
    return Status::success();
  }

  // The other way; give(begin, at, count) fills each piece. When it has returned, what was asked of
  // the accelerator before is done, too.
  template <typename Give>
  Status fill(DeviceAddress to, std::uint64_t bytes, const Give& give) {
    for (std::uint64_t begin = 0, piece = 0; begin < bytes; begin += slot_bytes_, ++piece) {
      const std::uint64_t count = std::min(slot_bytes_, bytes - begin);
      if (piece >= 2) PERDURE_TRY(accelerator_.wait(passed_[piece % 2].handle()));
      give(begin, slot(piece), count);
      PERDURE_TRY(accelerator_.copy_from_host(to + begin, slot(piece), count));
      PERDURE_TRY(accelerator_.record(passed_[piece % 2].handle()));
    }
    return accelerator_.finish();
  }

 private:
  HostRing(Accelerator& accelerator, std::uint64_t slot_bytes)
      : accelerator_(accelerator), slot_bytes_(slot_bytes) {}
  std::byte* slot(std::uint64_t piece) const { return slots_.at() + piece % 2 * slot_bytes_; }

  Accelerator& accelerator_;
  const std::uint64_t slot_bytes_;
  PinnedMemory slots_;
  std::array<AcceleratorEvent, 2> passed_;
};

}  // namespace perdure
