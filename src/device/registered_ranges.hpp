// SPDX-License-Identifier: BSD-3-Clause
//
// Registered ranges: what of a pool's mapping accelerators may reach directly. Ranges of whole
// pages that do not overlap, as the driver refuses a page that it has already; so a transfer goes
// in pieces of one range each.
//
// Invariants
//   device.R1  Each range is given back once, by the accelerator that took it, at the latest when
//       this object goes: before the mapping, and before the accelerators.
//
// Threads: any, as the saver adds a copy that it stores to first while the program opens another
// array or transfers to it. Failure: a file that can't be registered, as those of disks, is no
// error; its bytes go through a ring of the host (host_ring.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "device/accelerator.hpp"

namespace perdure {

class RegisteredRanges {
 public:
  RegisteredRanges() = default;
  ~RegisteredRanges() { give_back(); }
  RegisteredRanges(const RegisteredRanges&) = delete;
  RegisteredRanges& operator=(const RegisteredRanges&) = delete;

  // The pages of [begin, begin + bytes), as far as they are not. False: they can't be.
  bool add(Accelerator& accelerator, std::byte* begin, std::uint64_t bytes);
  void give_back();
  std::size_t count() const;

  // piece(begin, bytes), returning a Status, for each part of a range that is registered as a
  // whole that lies in one registration.
  template <typename Piece>
  Status for_each_piece(std::byte* begin, std::uint64_t bytes, const Piece& piece) const {
    DeviceAddress at = address_of(begin);
    for (const DeviceAddress stop : ends_of_pieces(at, at + bytes)) {
      PERDURE_TRY(piece(begin + (at - address_of(begin)), stop - at));
      at = stop;
    }
    return Status::success();
  }

 private:
  struct Range {
    DeviceAddress end = 0;
    std::byte* begin = nullptr;
    Accelerator* by = nullptr;
  };
  std::vector<DeviceAddress> ends_of_pieces(DeviceAddress begin, DeviceAddress end) const;

  mutable std::mutex mutex_;
  std::map<DeviceAddress, Range> ranges_;  // by their first byte
};

}  // namespace perdure
