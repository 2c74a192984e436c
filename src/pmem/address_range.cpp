// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/address_range.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <string>

namespace perdure {
namespace {

// The base is a multiple of this, so that DAX and tmpfs may use huge pages.
constexpr std::uint64_t alignment = std::uint64_t{2} << 20U;
constexpr std::uint64_t reserve_first = std::uint64_t{1} << 40U;
constexpr std::uint64_t reserve_least = std::uint64_t{64} << 20U;
constexpr int untouchable = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

}  // namespace

Result<AddressRange> AddressRange::reserve(std::uint64_t least_bytes) {
  std::uint64_t bytes = reserve_first;
  while (bytes < least_bytes) bytes *= 2;
  for (; bytes >= reserve_least && bytes >= least_bytes; bytes /= 2) {
    void* reserved = ::mmap(nullptr, bytes + alignment, PROT_NONE, untouchable, -1, 0);
    if (reserved != MAP_FAILED) return AddressRange(reserved, bytes + alignment);
  }
  return Status(Code::no_space, "no ", least_bytes,
                " bytes of addresses are free for the mapping; raise the limit of virtual memory "
                "(ulimit -v)");
}

AddressRange::AddressRange(void* reserved, std::uint64_t reserved_bytes)
    : reserved_(reserved), reserved_bytes_(reserved_bytes) {
  const auto address = reinterpret_cast<std::uintptr_t>(reserved);
  const std::uintptr_t skipped = (alignment - address % alignment) % alignment;
  base_ = static_cast<std::byte*>(reserved) + skipped;
  capacity_ = reserved_bytes - alignment;
}

AddressRange::AddressRange(AddressRange&& other) noexcept
    : reserved_(std::exchange(other.reserved_, nullptr)),
      reserved_bytes_(std::exchange(other.reserved_bytes_, 0)),
      base_(std::exchange(other.base_, nullptr)),
      capacity_(std::exchange(other.capacity_, 0)) {}

AddressRange& AddressRange::operator=(AddressRange&& other) noexcept {
  std::swap(reserved_, other.reserved_);
  std::swap(reserved_bytes_, other.reserved_bytes_);
  std::swap(base_, other.base_);
  std::swap(capacity_, other.capacity_);
  return *this;
}

AddressRange::~AddressRange() {
  if (reserved_ != nullptr) ::munmap(reserved_, reserved_bytes_);
}

int AddressRange::map(int fd, std::uint64_t begin, std::uint64_t end, int protection, int flags) {
  void* mapped = ::mmap(base_ + begin, end - begin, protection, flags | MAP_FIXED, fd,
                        static_cast<off_t>(begin));
  return mapped == MAP_FAILED ? errno : 0;
}

void AddressRange::unmap(std::uint64_t begin, std::uint64_t end) {
  // If even this fails the old mapping stays: addresses that nobody hears of.
  [[maybe_unused]] void* ignored =
      ::mmap(base_ + begin, end - begin, PROT_NONE, untouchable | MAP_FIXED, -1, 0);
}

}  // namespace perdure
