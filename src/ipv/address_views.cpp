// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/address_views.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

namespace perdure {
namespace {

// Page tables move in units of this where source and destination are at the same distance from
// its multiples; otherwise entry by entry.
constexpr std::uint64_t table_bytes = std::uint64_t{2} << 20U;

// Addresses whose first one stands to a multiple of table_bytes as `like` does.
std::byte* first_like(std::byte* reserved, const std::byte* like) {
  const auto wanted = reinterpret_cast<std::uintptr_t>(like) % table_bytes;
  const auto have = reinterpret_cast<std::uintptr_t>(reserved) % table_bytes;
  return reserved + (wanted + table_bytes - have) % table_bytes;
}

// Not the C library's: UCX, which MPICH uses, puts a function of its own in the place of that one,
// and it forgets where the pages should go.
bool move_pages(std::byte* from, std::byte* to, std::uint64_t bytes, long more_flags) {
  const long flags = MREMAP_MAYMOVE | MREMAP_FIXED | more_flags;
  return ::syscall(SYS_mremap, from, bytes, bytes, flags, to) ==
         static_cast<long>(reinterpret_cast<std::uintptr_t>(to));
}

}  // namespace

AddressViews::AddressViews(std::byte* address, std::uint64_t bytes, bool move)
    : address_(address), bytes_(bytes), move_(move) {}

AddressViews::~AddressViews() {
  for (const Reserved& range : reserved_) ::munmap(range.base, range.bytes);
}

Result<unsigned> AddressViews::add_place(FilePages pages) {
  PERDURE_ASSERT(pages.bytes == bytes_);
  PERDURE_TRY_ASSIGN(auto reading, make_home(pages, ViewAccess::read));
  PERDURE_TRY_ASSIGN(auto writing, make_home(pages, ViewAccess::write));
  PERDURE_TRY_ASSIGN(auto file, open_shared_file(pages));
  const int flags = pages.file.map_sync ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
  places_.push_back({{reading, writing}, std::move(file), pages.offset, flags});
  return static_cast<unsigned>(places_.size() - 1);
}

Result<std::byte*> AddressViews::make_home(FilePages pages, ViewAccess access) {
  const std::uint64_t bytes = bytes_ + table_bytes;
  void* reserved =
      ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reserved == MAP_FAILED) return errno_status("reserving addresses for an object", errno);
  reserved_.push_back({static_cast<std::byte*>(reserved), bytes});
  pages.writable = access == ViewAccess::write;
  return map_shared_view(pages, first_like(static_cast<std::byte*>(reserved), address_), true);
}

// The old addresses keep the same pages mapped, without page tables.
bool AddressViews::move_view(std::byte* from, std::byte* to) const noexcept {
  return move_pages(from, to, bytes_, MREMAP_DONTUNMAP);
}

bool AddressViews::map_anew(unsigned view) const noexcept {
  const Place& place = places_[view / 2];
  const int protection = view % 2 == 0 ? PROT_READ : PROT_READ | PROT_WRITE;
  return ::mmap(address_, bytes_, protection, place.flags | MAP_FIXED | MAP_POPULATE,
                place.file.fd(), static_cast<off_t>(place.offset)) != MAP_FAILED;
}

bool AddressViews::show(unsigned place, ViewAccess access) noexcept {
  const unsigned wanted = 2 * place + (access == ViewAccess::write ? 1 : 0);
  if (wanted == shown_) return true;
  if (move_) {
    const bool home = shown_ == none || move_view(address_, home_of(shown_));
    if (home && move_view(home_of(wanted), address_)) {
      shown_ = wanted;
      return true;
    }
    if (errno != EINVAL) return false;
    move_ = false;
  }
  if (!map_anew(wanted)) return false;
  shown_ = wanted;
  return true;
}

bool AddressViews::leave() noexcept {
  if (shown_ == none) return true;
  void* memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return false;
  std::memcpy(memory, address_, bytes_);
  if (!move_pages(static_cast<std::byte*>(memory), address_, bytes_, 0)) {
    ::munmap(memory, bytes_);
    return false;
  }
  shown_ = none;
  return true;
}

Result<FilePages> make_memory_pages(std::uint64_t bytes, FileHandle& file) {
  file = FileHandle(::memfd_create("perdure object", MFD_CLOEXEC));
  if (file.fd() < 0) return errno_status("memfd_create for an object", errno);
  if (::ftruncate(file.fd(), static_cast<off_t>(bytes)) != 0) {
    return errno_status("memory of " + std::to_string(bytes) + " bytes for an object", errno);
  }
  FilePages pages;
  pages.file.path = "/proc/self/fd/" + std::to_string(file.fd());
  PERDURE_TRY_ASSIGN(pages.identity, identify_file(pages.file.path));
  pages.bytes = bytes;
  return pages;
}

}  // namespace perdure
