// SPDX-License-Identifier: BSD-3-Clause
#include "pool/buffer_memory.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>

#include "base/files.hpp"
#include "base/fork_guard.hpp"
#include "device/cuda_driver.hpp"
#include "pool/fault_tracker.hpp"
#include "pool/written_pages_abi.hpp"

namespace perdure {
namespace {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool shared = false;
  bool usual_pages = false;
};

std::uint64_t page_bytes() {
  static const auto bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

// Files of the kernel about this process. Kept open, as opening costs more than the answer; a
// forked child opens its own.
class OwnFiles {
 public:
  enum Which : std::uint8_t { maps, status, count };

  // -1: it can't be opened.
  static int fd(Which which) {
    const int open = open_[which];
    return open >= 0 ? open : open_now(which);
  }

 private:
  static int open_now(Which which) {
    static std::mutex mutex;
    const std::lock_guard<std::mutex> lock(mutex);
    if (open_[which] >= 0) return open_[which];
    static std::once_flag once;
    std::call_once(once, [] { in_forked_children(close_in_child); });
    constexpr std::array<const char*, count> paths{"/proc/self/maps", "/proc/self/status"};
    open_[which] = open_kernel_file(paths[which], O_RDONLY).release();
    return open_[which];
  }
  static void close_in_child() {
    for (std::atomic<int>& each : open_) {
      if (const int fd = each.exchange(-1); fd >= 0) ::close(fd);
    }
  }

  static inline std::array<std::atomic<int>, count> open_{-1, -1};
};

// The mappings of the process from an address on, in order: by Linux 6.11's query, which looks at
// one, or else by the text of all.
class Mappings {
 public:
  bool readable() const { return fd_ >= 0; }

  // The one that holds the address, or the next one.
  std::optional<Mapping> at(std::uint64_t address) {
    kernel::MappingQuery query{};
    query.size = sizeof query;
    query.query_flags = covering_or_next;
    query.query_addr = address;
    if (!by_text_ && ::ioctl(fd_, kernel::procmap_query, &query) == 0) {
      const auto has = [&](std::uint64_t flag) { return (query.vma_flags & flag) != 0; };
      return Mapping{query.vma_start,           query.vma_end,
                     has(kernel::vma_readable), has(kernel::vma_writable),
                     has(kernel::vma_shared),   query.vma_page_size == page_bytes()};
    }
    if (!by_text_ && errno == ENOENT) return std::nullopt;
    return in_text(address);
  }

 private:
  static constexpr std::uint64_t covering_or_next = 0x10;

  // "7f0000000000-7f0000001000 rw-p 00000000 00:00 0   [name]". The size of its pages is not in it:
  // huge ones are those of a file.
  std::optional<Mapping> in_text(std::uint64_t address) {
    if (!by_text_) text_.str(read_kernel_text("/proc/self/maps"));
    by_text_ = true;
    text_.clear();
    text_.seekg(0);
    for (std::string line; std::getline(text_, line);) {
      Mapping found;
      std::uint64_t inode = 0;
      char access[5] = "";
      const int fields = std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s %*s %*s %" SCNu64,
                                     &found.begin, &found.end, access, &inode);
      if (fields != 4 || found.end <= address) continue;
      found.readable = access[0] == 'r';
      found.writable = access[1] == 'w';
      found.shared = access[3] == 's';
      found.usual_pages = inode == 0;
      return found;
    }
    return std::nullopt;
  }

  int fd_ = OwnFiles::fd(OwnFiles::maps);
  bool by_text_ = false;
  std::istringstream text_;
};

Status refused(std::uint64_t byte, const char* what) {
  return Status(Code::invalid_argument, "byte ", byte, " of its buffer ", what,
                "; memory of a GPU, which only the device can read, is the usual reason: give a "
                "buffer in the host's memory, and copy to it before each commit");
}

// VmPin of proc_pid_status(5): pages that io_uring, RDMA and others have pinned.
bool pages_are_pinned() {
  std::array<char, 8192> text;
  const ssize_t count = ::pread(OwnFiles::fd(OwnFiles::status), text.data(), text.size() - 1, 0);
  if (count <= 0) return true;  // unknown
  text[static_cast<std::size_t>(count)] = '\0';
  const char* const line = std::strstr(text.data(), "\nVmPin:");
  std::uint64_t pinned_kib = 1;
  if (line != nullptr) (void)std::sscanf(line, "\nVmPin: %" SCNu64, &pinned_kib);
  return pinned_kib != 0;
}

}  // namespace

Result<Stores> check_buffer_memory(const std::byte* buffer, std::uint64_t size_bytes,
                                   std::uint64_t* reach_bytes) {
  const auto first = reinterpret_cast<std::uintptr_t>(buffer);
  Mappings mappings;
  if (!mappings.readable()) return Stores::by_others;
  if (first + size_bytes < first) return refused(0, "is not mapped");
  Stores stores = Stores::by_this_mapping;
  for (std::uint64_t at = first; at < first + size_bytes;) {
    const std::optional<Mapping> found = mappings.at(at);
    if (!found || found->begin > at) return refused(at - first, "is not mapped");
    if (!found->readable) return refused(at - first, "can't be read");
    if (!found->writable && !FaultTracker::protects(at))
      return refused(at - first, "can be read, but not written");
    if (found->shared || !found->usual_pages) stores = Stores::by_others;
    at = found->end;
    if (reach_bytes != nullptr) *reach_bytes = at - first;
  }
  return stores;
}

bool is_mapped(const std::byte* buffer, std::uint64_t size_bytes) {
  const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(buffer) % page_bytes();
  // Does nothing but look for a hole.
  return size_bytes == 0 ||
         ::msync(const_cast<std::byte*>(buffer - skew), size_bytes + skew, MS_ASYNC) == 0;
}

bool stores_may_go_unseen() {
  return pages_are_pinned() || CudaDriver::is_in_use();
}

}  // namespace perdure
