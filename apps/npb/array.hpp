// Array: memory from malloc, as plain as the arrays of the benchmarks. Nothing is written to it
// when it is made, so that a page which the program never uses is never touched. Throws
// std::bad_alloc.
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
  explicit Array(Index count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    values_.reset(static_cast<T*>(std::malloc(bytes > 0 ? bytes : 1)));
    if (!values_) throw std::bad_alloc();
    array_bytes += bytes;
  }

  T* get() { return values_.get(); }
  const T* get() const { return values_.get(); }

 private:
  struct Free {
    void operator()(T* values) const { std::free(values); }
  };
  std::unique_ptr<T, Free> values_;
};

}  // namespace npb
