// SPDX-License-Identifier: BSD-3-Clause
//
// Buffer: zeroed memory on huge pages where the kernel has them, so that what the modes are
// compared by is not the number of TLB misses.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <cstring>
#include <new>
#include <utility>

namespace hpccg {

template <typename T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count) : bytes_(count * sizeof(T)) {
    if (count == 0) return;
    void* mapped =
        ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    ::madvise(mapped, bytes_, MADV_HUGEPAGE);  // a hint; refused on some kernels
    elements_ = static_cast<T*>(mapped);
    std::memset(mapped, 0, bytes_);  // the pages are there before anything is timed
  }
  Buffer(Buffer&& other) noexcept
      : elements_(std::exchange(other.elements_, nullptr)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(elements_, other.elements_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Buffer() {
    if (elements_ != nullptr) ::munmap(elements_, bytes_);
  }

  T* get() { return elements_; }
  const T* get() const { return elements_; }

 private:
  T* elements_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace hpccg
