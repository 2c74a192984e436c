// SPDX-License-Identifier: BSD-3-Clause
#include "pool/written_tracker.hpp"

#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>

#include "base/files.hpp"
#include "pool/written_pages_abi.hpp"

namespace perdure {
namespace {

// Of the process, for good. A forked child closes its own, and opens others if it opens a pool.
std::atomic<int> userfault{-1};
std::atomic<int> pagemap{-1};

void close_in_child() {
  for (std::atomic<int>* const held : {&userfault, &pagemap}) {
    if (const int fd = held->exchange(-1); fd >= 0) ::close(fd);
  }
}

Status lacks(const char* what, int error) {
  Status status = errno_status(what, error);
  return {Code::unsupported, status.message()};
}

Status open_both() {
  // Without privileges it is given only like this; asynchronous protection asks nobody anyway.
  constexpr int how = O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY;
  FileHandle opened(static_cast<int>(::syscall(SYS_userfaultfd, how)));
  if (opened.fd() < 0) return lacks("userfaultfd", errno);
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = kernel::wp_async | kernel::wp_unpopulated | kernel::wp_hugetlbfs_shmem;
  if (::ioctl(opened.fd(), UFFDIO_API, &api) != 0) {
    return lacks("asynchronous write protection (Linux 6.7)", errno);
  }
  FileHandle map = open_kernel_file("/proc/self/pagemap", O_RDONLY);
  if (map.fd() < 0) return lacks("opening /proc/self/pagemap", errno);
  in_forked_children(close_in_child);
  userfault = opened.release();
  pagemap = map.release();
  return Status::success();
}

Status ask_userfault(unsigned long request, void* argument, const char* what) {
  if (::ioctl(userfault, request, argument) == 0) return Status::success();
  return errno_status(what, errno);
}

Status start_watching(std::uint64_t begin, std::uint64_t count) {
  uffdio_register range{};
  range.range = {begin, count};
  range.mode = UFFDIO_REGISTER_MODE_WP;
  return ask_userfault(UFFDIO_REGISTER, &range, "watching the pages of an array in log mode");
}

void stop_watching(std::uint64_t begin, std::uint64_t count) {
  uffdio_range range{begin, count};
  (void)::ioctl(userfault, UFFDIO_UNREGISTER, &range);  // the memory may be gone
}

Status scan_failed(int error) {
  if (error == EPERM) {
    return {Code::wrong_state,
            "the buffer's memory was unmapped, moved or mapped anew since the array was opened"};
  }
  return errno_status("asking for the written pages of an array", error);
}

// Protects [begin, end), and calls `each` with what was written, unless it is null.
template <typename Each>
Status protect_written(std::uint64_t begin, std::uint64_t end, const Each* each) {
  std::array<kernel::PageRegion, 256> regions;
  kernel::ScanArgument scan{};
  scan.size = sizeof scan;
  scan.flags = kernel::scan_protect_matching | kernel::scan_check_async;
  scan.end = end;
  scan.category_mask = scan.return_mask = kernel::page_is_written;
  if (each != nullptr) {
    scan.vec = reinterpret_cast<std::uintptr_t>(regions.data());
    scan.vec_len = regions.size();
  }
  for (std::uint64_t at = begin; at < end; at = scan.walk_end) {
    scan.start = at;
    const int found = ::ioctl(pagemap, kernel::pagemap_scan, &scan);
    if (found < 0) return scan_failed(errno);
    for (int i = 0; each != nullptr && i < found; ++i) {
      (*each)(regions[static_cast<std::size_t>(i)].start, regions[static_cast<std::size_t>(i)].end);
    }
  }
  return Status::success();
}

using NoEach = void (*)(std::uint64_t, std::uint64_t);

// Whether a store to a page of our own is reported, and only once.
Status try_a_page() {
  const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  void* const page =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return errno_status("mapping a page", errno);
  const auto begin = reinterpret_cast<std::uintptr_t>(page);
  const NoEach* const none = nullptr;
  int reported = 0;
  const auto count = [&reported](std::uint64_t, std::uint64_t) { ++reported; };
  Status status = start_watching(begin, bytes);
  if (status.ok()) status = protect_written(begin, begin + bytes, none);
  *static_cast<volatile char*>(page) = 1;
  if (status.ok()) status = protect_written(begin, begin + bytes, &count);
  if (status.ok()) status = protect_written(begin, begin + bytes, &count);
  ::munmap(page, bytes);
  if (status.ok() && reported == 1) return status;
  return {Code::unsupported,
          status.ok() ? "the kernel does not tell which pages were written" : status.message()};
}

}  // namespace

Status WrittenTracker::available() {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  if (userfault >= 0) return Status::success();
  PERDURE_TRY(open_both());
  Status tried = try_a_page();
  if (!tried.ok()) close_in_child();
  return tried;
}

Result<std::unique_ptr<PageTracker>> WrittenTracker::create(std::byte* base,
                                                            std::size_t size_bytes) {
  PERDURE_TRY(available());  // again in a forked child
  PERDURE_TRY(start_watching(reinterpret_cast<std::uintptr_t>(base), size_bytes));
  return std::unique_ptr<PageTracker>(new WrittenTracker(base, size_bytes));
}

WrittenTracker::~WrittenTracker() {
  stop(true);
}

// In a child the range is not watched, and the parent's must not be touched.
void WrittenTracker::unwatch(bool mapped) {
  if (mapped && !fork_.in_child()) stop_watching(address(0), size_bytes());
}

Status WrittenTracker::protect(ByteRange range) {
  const NoEach* const none = nullptr;
  return protect_written(address(range.begin), address(range.end), none);
}

Status WrittenTracker::release(ByteRange range) {
  uffdio_writeprotect request{};
  request.range = {address(range.begin), range.end - range.begin};
  return ask_userfault(UFFDIO_WRITEPROTECT, &request, "lifting write protection of an array");
}

Status WrittenTracker::take(ByteRange range, PageSet& changed) {
  const std::uint64_t first = address(0);
  const auto add = [&changed, first](std::uint64_t begin, std::uint64_t end) {
    changed.add(ByteRange{begin - first, end - first});
  };
  return protect_written(address(range.begin), address(range.end), &add);
}

}  // namespace perdure
