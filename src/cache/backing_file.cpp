// SPDX-License-Identifier: BSD-3-Clause
#include "cache/backing_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

namespace perdure {
namespace {

int open_flags(BackingFile::Access access) {
  switch (access) {
    case BackingFile::Access::read:
      return O_RDONLY;
    case BackingFile::Access::write:
      return O_WRONLY;
    case BackingFile::Access::read_write:
      return O_RDWR;
  }
  return O_RDONLY;
}

}  // namespace

Result<BackingFile> BackingFile::open(const std::string& path, Access access, Links links) {
  PERDURE_TRY_ASSIGN(auto opened, open_application_file(path, open_flags(access), links));
  BackingFile file(std::move(opened.handle), path);
  file.device_ = opened.device;
  file.inode_ = opened.inode;
  file.access_ = access;
  return file;
}

Result<BackingFile> BackingFile::make(const std::string& path) {
  PERDURE_TRY(open_application_file(path, O_RDWR | O_CREAT | O_EXCL).status());
  return open(path, Access::read_write);
}

Status BackingFile::take_access(const BackingFile& other) {
  if (access_ == other.access_ || access_ == Access::read_write) return Status::success();
  if (::dup3(other.handle_.fd(), handle_.fd(), O_CLOEXEC) < 0) {
    return errno_status("open " + path_ + " for more", errno);
  }
  access_ = other.access_;
  return Status::success();
}

FileMedium BackingFile::medium() const {
  struct statfs system{};
  if (::fstatfs(handle_.fd(), &system) != 0) return FileMedium::other;
  constexpr std::uint64_t zfs_magic = 0x2FC12FC1;
  switch (static_cast<std::uint32_t>(system.f_type)) {
    case TMPFS_MAGIC:
    case RAMFS_MAGIC:
    case HUGETLBFS_MAGIC:
      return FileMedium::memory;
    case EXT4_SUPER_MAGIC:  // and its elders
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case zfs_magic:
      return FileMedium::local;
    default:
      return FileMedium::other;
  }
}

Result<std::uint64_t> BackingFile::size_bytes() const {
  struct stat status{};
  if (::fstat(handle_.fd(), &status) != 0) return errno_status("fstat " + path_, errno);
  return static_cast<std::uint64_t>(status.st_size);
}

Result<std::size_t> BackingFile::read_some(std::uint64_t offset, void* to,
                                           std::size_t bytes) const {
  auto* place = static_cast<unsigned char*>(to);
  std::size_t done = 0;
  while (done < bytes) {
    const ssize_t got =
        ::pread(handle_.fd(), place + done, bytes - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_status("read " + path_ + " at " + std::to_string(offset), errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

Status BackingFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  PERDURE_TRY_ASSIGN(const std::size_t got, read_some(offset, to, bytes));
  if (got < bytes) std::memset(static_cast<unsigned char*>(to) + got, 0, bytes - got);
  return Status::success();
}

Status BackingFile::write(std::uint64_t offset, const void* from, std::size_t bytes) const {
  const auto* place = static_cast<const unsigned char*>(from);
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t put =
        ::pwrite(handle_.fd(), place + done, bytes - done, static_cast<off_t>(offset + done));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return errno_status("write " + path_ + " at " + std::to_string(offset), errno);
    done += static_cast<std::size_t>(put);
  }
  return Status::success();
}

Status BackingFile::set_size(std::uint64_t bytes) const {
  while (::ftruncate(handle_.fd(), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) {
      return errno_status("set the size of " + path_ + " to " + std::to_string(bytes), errno);
    }
  }
  return Status::success();
}

Result<FileStamp> BackingFile::stamp() const {
  struct stat status{};
  if (::fstat(handle_.fd(), &status) != 0) return errno_status("fstat " + path_, errno);
  const auto in_ns = [](const timespec& time) {
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(time.tv_nsec);
  };
  return FileStamp{static_cast<std::uint64_t>(status.st_size), in_ns(status.st_mtim),
                   in_ns(status.st_ctim)};
}

Status BackingFile::copy_from(const BackingFile& other) const {
  struct stat status{};
  if (::fstat(other.handle_.fd(), &status) != 0) return errno_status("fstat " + other.path_, errno);
  if (::fchmod(handle_.fd(), status.st_mode & 0777) != 0) {
    return errno_status("set the permissions of " + path_, errno);
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  PERDURE_TRY(set_size(size));
  std::vector<unsigned char> bytes(std::size_t{1} << 20);
  const std::vector<unsigned char> zeros(bytes.size());
  for (std::uint64_t at = 0; at < size; at += bytes.size()) {
    const std::size_t run = std::min<std::uint64_t>(bytes.size(), size - at);
    PERDURE_TRY(other.read(at, bytes.data(), run));
    if (std::memcmp(bytes.data(), zeros.data(), run) == 0) continue;
    PERDURE_TRY(write(at, bytes.data(), run));
  }
  return Status::success();
}

Status BackingFile::set_at_least(std::uint64_t bytes) const {
  PERDURE_TRY_ASSIGN(const std::uint64_t size, size_bytes());
  return size < bytes ? set_size(bytes) : Status::success();
}

// A file system that can't allocate ahead still shows the size.
Status BackingFile::allocate(std::uint64_t bytes) const {
  int error = 0;
  do {
    error = ::posix_fallocate(handle_.fd(), 0, static_cast<off_t>(bytes));
  } while (error == EINTR);
  if (error == 0) return Status::success();
  if (error != EOPNOTSUPP && error != EINVAL) {
    return errno_status("allocate " + std::to_string(bytes) + " bytes for " + path_, error);
  }
  return set_at_least(bytes);
}

Status BackingFile::hand_over() const {
  const int copy = ::fcntl(handle_.fd(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (copy < 0) return errno_status("duplicate the descriptor of " + path_, errno);
  return ::close(copy) == 0 ? Status::success() : errno_status("close " + path_, errno);
}

Status BackingFile::sync_by(int (*call)(int), const char* name) const {
  while (call(handle_.fd()) != 0) {
    if (errno == EINTR) continue;
    const int error = errno;
    ++failures_->count;
    return errno_status(std::string(name) + ' ' + path_, error);
  }
  return Status::success();
}

Status BackingFile::sync() const {
  const std::lock_guard<std::mutex> lock(failures_->mutex);
  return sync_by(::fsync, "fsync");
}

Status BackingFile::sync_data() const {
  const std::lock_guard<std::mutex> lock(failures_->mutex);
  return sync_by(::fdatasync, "fdatasync");
}

Status BackingFile::sync_after(std::uint64_t reported) const {
  const std::lock_guard<std::mutex> lock(failures_->mutex);
  Status synced = sync_by(::fsync, "fsync");
  if (synced.ok() && failures_->count != reported) {
    synced = Status(Code::io_error, path_,
                    ": an fsync before this one failed, so bytes of both may be lost; they are "
                    "written again by the next one");
  }
  failures_->reported.store(failures_->count);
  return synced;
}

}  // namespace perdure
