// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/written_back_file.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace perdure {

WrittenBackFile::WrittenBackFile(MappedFile mapped)
    : MappedDevice(std::move(mapped)), page_bytes_(static_cast<std::size_t>(::getpagesize())) {}

DeviceDescription WrittenBackFile::describe() const {
  const OpenFile& file = mapped().file();
  return {"file " + file.path, file.persistence, page_bytes_};
}

void WrittenBackFile::copy(std::uint64_t offset, const void* source, std::size_t count) {
  std::byte* to = writable(offset, count);
  if (count != 0) std::memcpy(to, source, count);
  note(granules_of(offset, count, page_bytes_));
  counter_set().add_copy(count);
}

void WrittenBackFile::flush(std::uint64_t offset, std::size_t count) {
  PERDURE_ASSERT(writable(offset, count) != nullptr);
  const ByteRange pages = granules_of(offset, count, page_bytes_);
  note(pages);
  counter_set().add_flush(pages.end - pages.begin);
}

Status WrittenBackFile::fence() {
  const std::lock_guard lock(fence_mutex_);
  counter_set().add_fence();
  if (!failure_.ok()) return failure_;
  const std::vector<ByteRange> ranges = take_noted();
  if (!ranges.empty()) failure_ = write_back(ranges);
  return failure_;
}

void WrittenBackFile::note(ByteRange pages) {
  const std::lock_guard lock(noted_mutex_);
  noted_.add(pages);
}

std::vector<ByteRange> WrittenBackFile::take_noted() {
  const std::lock_guard lock(noted_mutex_);
  return noted_.take();
}

// 1. msync hands the stores of the mapping to the file system and waits for its blocks.
// 2. fdatasync waits for what the file system needs to find them again, and for the drive's cache.
Status WrittenBackFile::write_back(const std::vector<ByteRange>& ranges) const {
  const OpenFile& file = mapped().file();
  PERDURE_TRY(mapped().check());
  for (const ByteRange& range : ranges) {
    if (::msync(base() + range.begin, range.end - range.begin, MS_SYNC) != 0) {
      return errno_status("msync " + file.path, errno);
    }
  }
  while (::fdatasync(file.handle.fd()) != 0) {
    if (errno != EINTR) return errno_status("fdatasync " + file.path, errno);
  }
  return Status::success();
}

}  // namespace perdure
