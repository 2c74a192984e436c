// SPDX-License-Identifier: BSD-3-Clause
//
// Array buffer: memory of ours in which an array's contents are, or wait to be saved.
//
// Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.hpp"

namespace perdure {

class ArrayBuffer {
 public:
  ArrayBuffer() = default;
  // Zeros; touched here once, so that no commit pays for page faults. `paged`: pages of its own;
  // large ones have them anyway. Code::no_space.
  static Result<ArrayBuffer> make(std::uint64_t size_bytes, bool paged);
  ArrayBuffer(ArrayBuffer&& other) noexcept { *this = std::move(other); }
  ArrayBuffer& operator=(ArrayBuffer&& other) noexcept;
  ~ArrayBuffer() { free(); }

  std::byte* at() const { return at_; }
  bool is_there() const { return at_ != nullptr; }
  // Whether an array of so many bytes can be in it.
  bool fits(std::uint64_t size_bytes, bool paged) const {
    return at_ != nullptr && size_bytes <= size_bytes_ && (paged_ || !paged);
  }

 private:
  void free();

  std::byte* at_ = nullptr;
  std::uint64_t size_bytes_ = 0;
  bool paged_ = false;
};

}  // namespace perdure
