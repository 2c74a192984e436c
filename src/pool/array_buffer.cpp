// SPDX-License-Identifier: BSD-3-Clause
#include "pool/array_buffer.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "pmem/flush.hpp"

namespace perdure {
namespace {

// Fewer bytes have no pages of their own: there may be a million such arrays.
constexpr std::uint64_t paged_bytes_min = 4096;

}  // namespace

Result<ArrayBuffer> ArrayBuffer::make(std::uint64_t size_bytes, bool paged) {
  ArrayBuffer buffer;
  buffer.size_bytes_ = std::max<std::uint64_t>(size_bytes, 1);
  buffer.paged_ = paged || size_bytes >= paged_bytes_min;
  const std::uint64_t bytes = buffer.size_bytes_;
  void* at = nullptr;
  int error = ENOMEM;
  if (buffer.paged_) {
    at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
    error = errno;
    if (at == MAP_FAILED) at = nullptr;
  } else {
    at = ::operator new(bytes, std::align_val_t{cache_line_bytes}, std::nothrow);
  }
  if (at == nullptr) {
    return errno_status("allocating a buffer of " + std::to_string(bytes) + " bytes", error);
  }
  if (buffer.paged_) ::madvise(at, bytes, MADV_HUGEPAGE);  // a hint; refused on some kernels
  std::memset(at, 0, bytes);
  buffer.at_ = static_cast<std::byte*>(at);
  return buffer;
}

ArrayBuffer& ArrayBuffer::operator=(ArrayBuffer&& other) noexcept {
  if (this == &other) return *this;
  free();
  at_ = std::exchange(other.at_, nullptr);
  size_bytes_ = other.size_bytes_;
  paged_ = other.paged_;
  return *this;
}

void ArrayBuffer::free() {
  if (at_ == nullptr) return;
  if (paged_) {
    ::munmap(at_, size_bytes_);
  } else {
    ::operator delete(at_, std::align_val_t{cache_line_bytes});
  }
}

}  // namespace perdure
