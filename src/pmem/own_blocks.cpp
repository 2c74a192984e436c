// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/own_blocks.hpp"

#include <fcntl.h>
#include <linux/falloc.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "pmem/page_ranges.hpp"

namespace perdure {
namespace {

constexpr std::uint32_t extents_a_call = 128;
constexpr std::size_t piece_bytes = std::size_t{1} << 20U;

// A question of the kernel, and room for its answer.
class ExtentsRequest {
 public:
  ExtentsRequest(std::uint64_t begin, std::uint64_t count) {
    head().fm_start = begin;
    head().fm_length = count;
    head().fm_flags = FIEMAP_FLAG_SYNC;
    head().fm_extent_count = extents_a_call;
  }
  bool ask(int fd) { return ::ioctl(fd, FS_IOC_FIEMAP, room_.data()) == 0; }
  std::span<const fiemap_extent> extents() {
    return {reinterpret_cast<const fiemap_extent*>(room_.data() + sizeof(fiemap)),
            head().fm_mapped_extents};
  }

 private:
  fiemap& head() { return *reinterpret_cast<fiemap*>(room_.data()); }
  alignas(fiemap)
      std::array<std::byte, sizeof(fiemap) + extents_a_call * sizeof(fiemap_extent)> room_{};
};

bool is_btrfs(int fd) {
  struct statfs file_system{};
  return ::fstatfs(fd, &file_system) == 0 && file_system.f_type == BTRFS_SUPER_MAGIC;
}

// Which parts of the file others have too. False where the file system does not say.
bool find_shared(int fd, std::uint64_t size, std::vector<ByteRange>& shared) {
  for (std::uint64_t begin = 0; begin < size;) {
    ExtentsRequest request(begin, size - begin);
    if (!request.ask(fd)) return false;
    if (request.extents().empty()) return true;
    for (const fiemap_extent& extent : request.extents()) {
      const std::uint64_t at = extent.fe_logical;
      begin = at + extent.fe_length;
      const bool is_shared = (extent.fe_flags & FIEMAP_EXTENT_SHARED) != 0;
      if (is_shared) shared.push_back({at, std::min(size, begin)});
      if ((extent.fe_flags & FIEMAP_EXTENT_LAST) != 0) return true;
    }
  }
  return true;
}

// The same bytes once more: the file system puts them where nobody else's are.
int write_again(int fd, const ByteRange& range) {
  std::vector<char> bytes(piece_bytes);
  for (std::uint64_t at = range.begin; at < range.end;) {
    const std::size_t count = std::min<std::uint64_t>(bytes.size(), range.end - at);
    const ssize_t read = ::pread(fd, bytes.data(), count, static_cast<off_t>(at));
    if (read <= 0) return read < 0 ? errno : EIO;
    const ssize_t written =
        ::pwrite(fd, bytes.data(), static_cast<std::size_t>(read), static_cast<off_t>(at));
    if (written < 0) return errno;
    at += static_cast<std::uint64_t>(written);
  }
  return 0;
}

int unshare(int fd, const ByteRange& range) {
  while (::fallocate(fd, FALLOC_FL_UNSHARE_RANGE, static_cast<off_t>(range.begin),
                     static_cast<off_t>(range.end - range.begin)) != 0) {
    if (errno == EOPNOTSUPP || errno == EINVAL) return write_again(fd, range);
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

Status write_in_place(int fd, const std::string& path) {
  if (!is_btrfs(fd)) return Status::success();
  int flags = 0;
  if (::ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0) {
    flags |= FS_NOCOW_FL;
    if (::ioctl(fd, FS_IOC_SETFLAGS, &flags) == 0) return Status::success();
  }
  return errno_status("have Btrfs write " + path + " in place (chattr +C)", errno);
}

Status unshare_blocks(int fd, const std::string& path) {
  struct stat found{};
  if (::fstat(fd, &found) != 0) return errno_status("fstat " + path, errno);
  std::vector<ByteRange> shared;
  if (!find_shared(fd, static_cast<std::uint64_t>(found.st_size), shared)) {
    return Status::success();
  }
  for (const ByteRange& range : shared) {
    if (const int failed = unshare(fd, range); failed != 0) {
      return errno_status("give " + path +
                              " blocks of its own, which it shares with a copy or a "
                              "snapshot (free space there)",
                          failed);
    }
  }
  if (!shared.empty() && ::fsync(fd) != 0) return errno_status("fsync " + path, errno);
  return Status::success();
}

}  // namespace perdure
