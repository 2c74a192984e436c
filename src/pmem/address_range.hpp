// SPDX-License-Identifier: BSD-3-Clause
//
// A large range of reserved addresses into which a growing file is mapped piece by piece, so that
// the address of its first byte never changes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.hpp"

namespace perdure {

class AddressRange {
 public:
  // Reserves 1 TiB, or the largest half, quarter, … of it that the system grants and that holds
  // `least_bytes`. Reserved pages can't be touched and cost nothing.
  static Result<AddressRange> reserve(std::uint64_t least_bytes);

  AddressRange(AddressRange&& other) noexcept;
  AddressRange& operator=(AddressRange&& other) noexcept;
  AddressRange(const AddressRange&) = delete;
  AddressRange& operator=(const AddressRange&) = delete;
  ~AddressRange();  // unmaps all

  std::byte* base() const { return base_; }
  std::uint64_t capacity_bytes() const { return capacity_; }

  // Maps [begin, end) of the file to the same place of the range; page multiples. An errno or 0.
  int map(int fd, std::uint64_t begin, std::uint64_t end, int protection, int flags);
  // Makes [begin, end) untouchable again.
  void unmap(std::uint64_t begin, std::uint64_t end);

 private:
  AddressRange(void* reserved, std::uint64_t reserved_bytes);

  void* reserved_ = nullptr;
  std::uint64_t reserved_bytes_ = 0;
  std::byte* base_ = nullptr;
  std::uint64_t capacity_ = 0;
};

}  // namespace perdure
