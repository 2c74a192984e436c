// SPDX-License-Identifier: BSD-3-Clause
//
// Checked copies (PERDURE_CHECK=1): the copies of a twin array as the program sees them, mapped a
// second time. Only the working one can be stored to, and none while a commit saves. The pool
// itself goes on through the device's mapping.
//
// Threads: as the array.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pool/array_entry.hpp"
#include "pool/store_guard.hpp"

namespace perdure {

class CheckedCopies {
 public:
  // Code::unsupported if the copies have no pages of their own in a file. None can be stored to.
  static Result<std::unique_ptr<CheckedCopies>> create(const Device& device,
                                                       const ArrayEntry& entry);
  ~CheckedCopies();
  CheckedCopies(const CheckedCopies&) = delete;
  CheckedCopies& operator=(const CheckedCopies&) = delete;

  std::byte* at(std::uint32_t copy) const { return mapped_ + copy * stride_bytes_; }
  // The program may store to this copy, and to no other.
  void allow_only(std::uint32_t copy);
  void allow_none();

 private:
  CheckedCopies(std::byte* mapped, std::uint64_t mapped_bytes, std::uint64_t stride_bytes)
      : mapped_(mapped), mapped_bytes_(mapped_bytes), stride_bytes_(stride_bytes) {}

  std::byte* mapped_;
  std::uint64_t mapped_bytes_;
  std::uint64_t stride_bytes_;
  std::vector<std::unique_ptr<StoreGuard>> guards_;
};

}  // namespace perdure
