// SPDX-License-Identifier: BSD-3-Clause
#include "pmem/shared_view.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "base/files.hpp"

namespace perdure {

// Links are followed: that it is the owner's file is looked at afterwards.
Result<FileHandle> open_shared_file(const FilePages& pages) {
  PERDURE_TRY_ASSIGN(auto file, open_application_file(pages.file.path, O_RDWR));
  if (!(FileIdentity{file.device, file.inode} == pages.identity)) {
    return Status(Code::foreign, pages.file.path,
                  " is another file than its owner's: the pool's directory is not shared");
  }
  if (file.bytes < pages.offset + pages.bytes) {
    return Status(Code::damaged, pages.file.path, " is shorter than its owner says");
  }
  return std::move(file.handle);
}

Result<FileIdentity> identify_file(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return errno_status("stat " + path, errno);
  return FileIdentity{status.st_dev, status.st_ino};
}

Result<std::byte*> map_shared_view(const FilePages& pages, std::byte* address, bool populate) {
  PERDURE_TRY_ASSIGN(auto handle, open_shared_file(pages));
  int flags = pages.file.map_sync ? MAP_SHARED_VALIDATE | MAP_SYNC : MAP_SHARED;
  if (address != nullptr) flags |= MAP_FIXED;
  if (populate) flags |= MAP_POPULATE;
  const int protection = pages.writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* mapped = ::mmap(address, pages.bytes, protection, flags, handle.fd(),
                        static_cast<off_t>(pages.offset));
  if (mapped == MAP_FAILED) {
    return errno_status("map " + std::to_string(pages.bytes) + " bytes of " + pages.file.path,
                        errno);
  }
  return static_cast<std::byte*>(mapped);
}

Status cover_shared_view(std::byte* address, std::uint64_t bytes) {
  void* mapped = ::mmap(address, bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  return mapped == MAP_FAILED ? errno_status("covering a view", errno) : Status::success();
}

void unmap_shared_view(std::byte* address, std::uint64_t bytes) {
  ::munmap(address, bytes);
}

}  // namespace perdure
