// SPDX-License-Identifier: BSD-3-Clause
//
// Array: whole pages of memory from the heap, as plain as the arrays of the benchmarks. Nothing is
// written to it when it is made, so that a page which the program never uses is never touched. No
// page holds two arrays, so that each can be an object of in-place versioning.
//
// Arrays follow one another as malloc lays them out. If all began at multiples of 2 MiB, equal
// offsets of all of them would meet in one set of a cache. Only a large array that is carried from
// one iteration to the next begins at such a multiple, and only in a run that keeps it by in-place
// versioning: its copies in the pool begin there, too, so that huge pages can show them.
//
// Throws std::bad_alloc. Threads: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>

namespace npb {

using Index = std::ptrdiff_t;

// The bytes of all arrays that this process made.
inline std::uint64_t array_bytes = 0;

// Whether large objects begin where a huge page can; settled by the options, before any array is
// made.
inline bool objects_on_huge_pages = false;

// Whether in-place versioning may have the array as an object.
enum class Use { other, object };

template <typename T>
class Array {
 public:
  Array() = default;
  explicit Array(Index count, Use use = Use::other) : count_(count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    const std::size_t pages = bytes / page_bytes + 1;
    const bool huge = use == Use::object && objects_on_huge_pages && bytes >= 2 * huge_page_bytes;
    const std::size_t alignment = huge ? huge_page_bytes : page_bytes;
    const std::size_t room = (pages * page_bytes + alignment - 1) / alignment * alignment;
    values_.reset(static_cast<T*>(std::aligned_alloc(alignment, room)));
    if (!values_) throw std::bad_alloc();
    array_bytes += bytes;
  }

  T* get() { return values_.get(); }
  const T* get() const { return values_.get(); }
  Index count() const { return count_; }

 private:
  static constexpr std::size_t page_bytes = 4096;
  static constexpr std::size_t huge_page_bytes = std::size_t{2} << 20U;
  struct Free {
    void operator()(T* values) const { std::free(values); }
  };
  Index count_ = 0;
  std::unique_ptr<T, Free> values_;
};

}  // namespace npb
