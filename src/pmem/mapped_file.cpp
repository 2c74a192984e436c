// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <limits>

#include "base/files.hpp"

namespace perdure {
namespace {

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::uint64_t round_up(std::uint64_t bytes) {
  return (bytes + page_bytes() - 1) / page_bytes() * page_bytes();
}

int map_flags(FileKind kind) {
  return kind == FileKind::dax ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
}

int protection(bool read_only) {
  return read_only ? PROT_READ : PROT_READ | PROT_WRITE;
}

// Fewer are mapped sooner than a thread is started.
constexpr std::uint64_t in_background_from = std::uint64_t{16} << 20U;

Status full_status(const std::string& path, std::uint64_t size, int error_number) {
  const std::string what = "allocate " + std::to_string(size) + " bytes for " + path;
  if (error_number == EFBIG) {
    return {Code::no_space, what + ": larger than the file system or the limit of the process " +
                                "allows; raise the limit (ulimit -f)"};
  }
  Status status = errno_status(what, error_number);
  if (status.code() != Code::no_space) return status;
  return {Code::no_space, status.message() + "; free space there, or choose another directory"};
}

}  // namespace

int probe_map_sync(int fd, bool read_only) {
  // A mapping beyond the end of the file is legal as long as nobody touches it.
  void* mapped =
      ::mmap(nullptr, page_bytes(), protection(read_only), MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0);
  if (mapped == MAP_FAILED) return errno;
  ::munmap(mapped, page_bytes());
  return 0;
}

Result<MappedFile> MappedFile::map(OpenFile file) {
  struct stat status{};
  if (::fstat(file.handle.fd(), &status) != 0) return errno_status("fstat " + file.path, errno);
  const auto size = static_cast<std::uint64_t>(status.st_size);
  Result<AddressRange> addresses = AddressRange::reserve(round_up(size));
  if (!addresses.ok()) return addresses.status();
  MappedFile mapped(std::move(file), addresses.take());
  // pmem.D5: a file with holes, such as a sparse copy, gets its blocks now or is refused.
  const bool has_holes = static_cast<std::uint64_t>(status.st_blocks) * 512 < size;
  if (has_holes && !mapped.file_.read_only && !mapped.file_.shared) {
    PERDURE_TRY(mapped.allocate(0, size));
  }
  PERDURE_TRY(mapped.map_existing(size));
  mapped.untouched_ = round_up(size);
  return mapped;
}

Status MappedFile::map_existing(std::uint64_t size_bytes) {
  if (size_bytes != 0) PERDURE_TRY(map_pages(0, round_up(size_bytes), Pages::written));
  if (file_.may_be_cut) guard_ = std::make_unique<GuardedRange>(base(), round_up(size_bytes));
  size_ = size_bytes;
  return Status::success();
}

Status MappedFile::map_pages(std::uint64_t begin, std::uint64_t end, Pages pages) {
  const int failed = addresses_.map(file_.handle.fd(), begin, end, protection(file_.read_only),
                                    map_flags(file_.kind));
  if (failed != 0) return errno_status("map " + file_.path, failed);
  // The pages of an ordinary file would be read from its disk, or written back by the next fence,
  // wanted or not; and each write-back makes the kernel watch them for stores anew anyway.
  if (file_.read_only || file_.shared || file_.kind == FileKind::ordinary) return Status::success();
  if (pages == Pages::fresh && file_.copied_first) return Status::success();
  // Of blocks of tmpfs that were written before, entries that are made for a load allow stores as
  // well, and many are made at once, in a third of the time. New blocks are made faster for a
  // store, and a DAX file system has to see one.
  const bool for_load = pages == Pages::written && file_.kind == FileKind::tmpfs;
  std::byte* const first = addresses_.base() + begin;
  if (for_load && end - begin >= in_background_from) {
    filler_ = std::make_unique<PageTableFiller>(first, end - begin);
    return Status::success();
  }
  const int untouched = fill_page_table(first, end - begin, for_load);
  if (untouched == 0) return Status::success();
  addresses_.unmap(begin, end);
  return errno_status("touch the pages of " + file_.path, untouched);
}

Status MappedFile::allocate(std::uint64_t offset, std::uint64_t count) {
  int failed = beyond_file_limit(offset + count);
  if (failed == 0) failed = EINTR;
  while (failed == EINTR) {
    failed =
        ::posix_fallocate(file_.handle.fd(), static_cast<off_t>(offset), static_cast<off_t>(count));
  }
  return failed == 0 ? Status::success() : full_status(file_.path, count, failed);
}

Status MappedFile::discard(std::uint64_t offset, std::uint64_t count) {
  const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  while (::fallocate(file_.handle.fd(), mode, static_cast<off_t>(offset),
                     static_cast<off_t>(count)) != 0) {
    if (errno != EINTR) return errno_status("give back blocks of " + file_.path, errno);
  }
  return Status::success();
}

std::uint64_t MappedFile::allocated_bytes() const {
  struct stat status{};
  if (::fstat(file_.handle.fd(), &status) != 0) return size_;
  return static_cast<std::uint64_t>(status.st_blocks) * 512;
}

std::uint64_t MappedFile::next_allocated(std::uint64_t offset) const {
  const off_t found = ::lseek(file_.handle.fd(), static_cast<off_t>(offset), SEEK_DATA);
  if (found >= 0) return static_cast<std::uint64_t>(found);
  return errno == ENXIO ? size_ : offset;
}

std::uint64_t MappedFile::free_bytes() const {
  struct statvfs space{};
  if (::fstatvfs(file_.handle.fd(), &space) != 0 || space.f_blocks == 0) {
    return std::numeric_limits<std::uint64_t>::max();
  }
  return static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
}

Status MappedFile::grow(std::uint64_t size_bytes) {
  if (size_bytes <= size_) return Status::success();
  if (size_bytes > addresses_.capacity_bytes()) {
    const std::uint64_t lacking = size_bytes - size_;
    if (lacking > free_bytes()) {
      return Status(Code::no_space, file_.path, " needs ", lacking,
                    " bytes more, and its file system has ", free_bytes(),
                    " free; choose a larger one, or smaller arrays");
    }
    return Status(Code::no_space, file_.path, " can grow to ", addresses_.capacity_bytes(),
                  " bytes while it is open; close and reopen it for more");
  }
  PERDURE_TRY(check());
  const std::uint64_t grown = round_up(size_bytes);
  Status status = allocate(size_, grown - size_);
  // The last old page is mapped already, even where the old size ended within it.
  const std::uint64_t mapped = round_up(size_);
  if (status.ok() && grown > mapped) status = map_pages(mapped, grown, Pages::fresh);
  // The new size itself must be durable before anything is stored beyond the old one.
  if (status.ok() && ::fsync(file_.handle.fd()) != 0) {
    status = errno_status("fsync " + file_.path, errno);
  }
  if (!status.ok()) {
    // Blocks beyond the old size go back; should that fail too, they are merely unused.
    [[maybe_unused]] const int ignored = ::ftruncate(file_.handle.fd(), static_cast<off_t>(size_));
    return status;
  }
  size_ = grown;
  return Status::success();
}

bool MappedFile::write(std::uint64_t offset, const void* source, std::uint64_t count) const {
  const auto* from = static_cast<const std::byte*>(source);
  for (std::uint64_t done = 0; done < count;) {
    const ssize_t bytes =
        ::pwrite(file_.handle.fd(), from + done, count - done, static_cast<off_t>(offset + done));
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    done += static_cast<std::uint64_t>(bytes);
  }
  return true;
}

bool MappedFile::copy_from(std::uint64_t offset, int fd, std::uint64_t from,
                           std::uint64_t count) const {
  auto to = static_cast<off_t>(offset);
  auto at = static_cast<off_t>(from);
  while (count > 0) {
    const ssize_t bytes = ::copy_file_range(fd, &at, file_.handle.fd(), &to, count, 0);
    if (bytes < 0 && errno == EINTR) continue;
    if (bytes <= 0) return false;
    count -= static_cast<std::uint64_t>(bytes);
  }
  return true;
}

void MappedFile::touch_pages() {
  if (!file_.copied_first) return;
  file_.copied_first = false;
  const std::uint64_t count = size_ - untouched_;
  // What can't be touched now is touched by whoever comes to it.
  if (count < in_background_from) {
    (void)fill_page_table(base() + untouched_, count, false);
  } else {
    filler_ = std::make_unique<PageTableFiller>(base() + untouched_, count);
  }
}

Status MappedFile::check() const {
  if (guard_ != nullptr && guard_->has_lost_pages()) {
    return Status(Code::damaged, file_.path, " was cut by another program while it was read");
  }
  struct stat status{};
  if (::fstat(file_.handle.fd(), &status) != 0) return errno_status("fstat " + file_.path, errno);
  if (status.st_nlink == 0) {
    return Status(Code::io_error, file_.path,
                  " was removed while it is open: its bytes end with this process. Keep cleaners "
                  "(tmpfiles, RemoveIPC) and other programs away from the pool");
  }
  if (static_cast<std::uint64_t>(status.st_size) < size_) {
    return Status(Code::io_error, file_.path, " was cut from ", size_, " to ", status.st_size,
                  " bytes by another program while it was open");
  }
  return Status::success();
}

}  // namespace perdure
