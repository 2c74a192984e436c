// Array: whole pages of memory from the heap, as plain as the arrays of the benchmarks. Nothing is
// written to it when it is made, so that a page which the program never uses is never touched. No
// page holds two arrays, so that each can be an object of in-place versioning; a large one begins
// where a huge page can, as the copies in the pool do. Throws std::bad_alloc.
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

template <typename T>
class Array {
 public:
  Array() = default;
  explicit Array(Index count) : count_(count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    const std::size_t pages = bytes / page_bytes + 1;
    const std::size_t alignment = bytes < 2 * huge_page_bytes ? page_bytes : huge_page_bytes;
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
