// SPDX-License-Identifier: BSD-3-Clause
//
// Array memory: where the contents of an array in copy or log mode are: the application's buffer,
// or one of ours; and a second one, in which they wait to be saved while the application goes on.
//
// Threads: one at a time; lose() may come from any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.hpp"
#include "pool/array_buffer.hpp"
#include "pool/buffer_memory.hpp"

namespace perdure {

class ArrayMemory {
 public:
  // `filled`: with what a new array begins with.
  ArrayMemory(std::byte* given, bool filled) : at_(given), filled_(filled && given != nullptr) {}

  // Null: there is none, until use_own().
  std::byte* at() const { return at_; }
  // The application's own, or null.
  std::byte* given() const { return own_.is_there() ? nullptr : at_; }
  bool is_filled() const { return filled_; }
  // For memory that the application gives, before it is used: which processes store to it.
  Result<Stores> check(const std::byte* at, std::uint64_t size_bytes);
  // As check() found, contents of that size would be in memory of the same kind. A vector that
  // grows within its capacity does so in most steps.
  bool reaches(std::uint64_t size_bytes) const {
    return how_lost_ == nullptr && size_bytes <= reach_bytes_;
  }

  // Ours has room for so many bytes, in pages of its own if it is `paged`.
  bool has_room(std::uint64_t size_bytes, bool paged) const { return own_.fits(size_bytes, paged); }
  std::byte* own() const { return own_.at(); }
  void use_given(std::byte* at) { use({}, at); }
  void use_own(ArrayBuffer made) {
    std::byte* const at = made.at();
    use(std::move(made), at);
  }

  // It is no more what the array's contents are in, and `how`, which is for good, says why.
  // False: that was known.
  bool lose(const char* how) {
    const char* none = nullptr;
    return how_lost_.compare_exchange_strong(none, how);
  }
  // Null: it is here.
  const char* how_lost() const { return how_lost_; }

  void wait_in(ArrayBuffer staging) { staging_ = std::move(staging); }
  bool is_staged() const { return staging_.is_there(); }
  // What is saved from now on: the contents of this instant, or those that are there then.
  void stage(std::uint64_t size_bytes);
  void unstage() { source_ = at_; }
  const std::byte* source() const { return source_; }

 private:
  void use(ArrayBuffer own, std::byte* at);

  std::byte* at_;
  const bool filled_;
  ArrayBuffer own_;  // what at_ is, unless the application gave it
  ArrayBuffer staging_;
  const std::byte* source_ = nullptr;
  std::uint64_t reach_bytes_ = 0;
  std::atomic<const char*> how_lost_{nullptr};
};

}  // namespace perdure
