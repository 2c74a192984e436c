// SPDX-License-Identifier: BSD-3-Clause
//
// Opens files as devices. What differs between the kinds is flush and fence: the processor's for
// DAX and tmpfs (CacheFile), the kernel's for ordinary files (WrittenBackFile).
#include "pmem/file_device.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "pmem/cache_file.hpp"
#include "pmem/mapped_file.hpp"
#include "pmem/own_blocks.hpp"
#include "pmem/written_back_file.hpp"

namespace perdure {
namespace {

bool is_memory_file_system(int fd) {
  struct statfs file_system{};
  if (::fstatfs(fd, &file_system) != 0) return false;
  return file_system.f_type == TMPFS_MAGIC || file_system.f_type == RAMFS_MAGIC;
}

Status dax_refused(const std::string& path, int error_number) {
  return Status(Code::unsupported, path, " can't be mapped with MAP_SYNC (",
                std::strerror(error_number),
                "): it is not on a DAX file system; mount one with -o dax on persistent memory, or "
                "let the kind be chosen automatically");
}

// Fills in kind and persistence class.
Status classify(OpenFile& file, FileKind wanted) {
  const bool in_memory = is_memory_file_system(file.handle.fd());
  file.persistence = in_memory ? PersistenceClass::process_crash : PersistenceClass::power_failure;
  file.kind = wanted;
  if (wanted == FileKind::ordinary) return Status::success();
  if (wanted == FileKind::tmpfs && !in_memory) {
    return Status(Code::unsupported, file.path,
                  " is not on a tmpfs; choose a directory such as /dev/shm, or let the kind be "
                  "chosen automatically");
  }
  if (wanted == FileKind::tmpfs) return Status::success();
  const int refused = probe_map_sync(file.handle.fd(), file.read_only);
  if (refused != 0 && wanted == FileKind::dax) return dax_refused(file.path, refused);
  file.kind = refused == 0 ? FileKind::dax : in_memory ? FileKind::tmpfs : FileKind::ordinary;
  return Status::success();
}

// What the caller can do about it.
Status open_failed(const Status& status, const FileDeviceOptions& options) {
  const bool lacks_directory = options.create && status.code() == Code::not_found;
  if (lacks_directory) return {status.code(), status.message() + "; make its directory first"};
  if (status.code() == Code::not_found) {
    return {status.code(), status.message() + "; there is no such pool file, create it"};
  }
  return status;
}

Result<FileHandle> open_handle(const std::string& path, const FileDeviceOptions& options) {
  const FileAccess access = options.read_only ? FileAccess::read : FileAccess::read_write;
  auto handle =
      options.create ? create_file(path, options.trust) : open_file(path, access, options.trust);
  if (!handle.ok()) return open_failed(handle.status(), options);
  return handle;
}

// The file of that name is locked, which is `file` unless it was exchanged just now.
Status lock(OpenFile& file, const FileDeviceOptions& options) {
  PERDURE_TRY_ASSIGN(file.lock, open_file(file.path, FileAccess::read_write, options.trust));
  PERDURE_TRY(
      lock_file(file.lock.fd(), file.path, {.wait_ms = options.lock_wait_ms, .own_at_once = true}));
  struct stat locked{};
  struct stat opened{};
  if (::fstat(file.lock.fd(), &locked) != 0 || ::fstat(file.handle.fd(), &opened) != 0) {
    return errno_status("fstat " + file.path, errno);
  }
  if (locked.st_ino == opened.st_ino && locked.st_dev == opened.st_dev) return Status::success();
  return Status(Code::busy, file.path, " was exchanged while it was opened; open it again");
}

std::unique_ptr<Device> make_device(MappedFile mapped) {
  if (mapped.file().kind == FileKind::ordinary) {
    return std::make_unique<WrittenBackFile>(std::move(mapped));
  }
  return std::make_unique<CacheFile>(std::move(mapped));
}

Result<std::unique_ptr<Device>> open_opened(FileHandle handle, const std::string& path,
                                            const FileDeviceOptions& options) {
  OpenFile file;
  file.handle = std::move(handle);
  file.path = path;
  file.read_only = options.read_only;
  file.shared = options.shared;
  file.may_be_cut = options.may_be_cut;
  if (options.shared && options.create) {
    int failed = beyond_file_limit(options.sparse_bytes);
    if (failed == 0 &&
        ::ftruncate(file.handle.fd(), static_cast<off_t>(options.sparse_bytes)) != 0) {
      failed = errno;
    }
    if (failed != 0) {
      return errno_status(
          sentence("make ", path, " of ", options.sparse_bytes, " bytes with holes"), failed);
    }
  }
  if (!options.read_only && !options.shared) {
    PERDURE_TRY(lock(file, options));
  }
  PERDURE_TRY(classify(file, options.kind));
  file.copied_first = options.copied_first && file.kind == FileKind::tmpfs;
  if (options.create) PERDURE_TRY(write_in_place(file.handle.fd(), path));
  // Of a part its blocks are allocated as they come, and so is what it shares.
  if (!options.read_only && !options.shared && !options.create) {
    PERDURE_TRY(unshare_blocks(file.handle.fd(), path));
  }
  Result<MappedFile> mapped = MappedFile::map(std::move(file));
  if (!mapped.ok()) return mapped.status();
  // The previous holder of the lock may have removed the file while it was waited for.
  PERDURE_TRY(mapped.value().check());
  if (options.create) PERDURE_TRY(sync_directory_of(path));
  return make_device(mapped.take());
}

}  // namespace

Result<std::unique_ptr<Device>> open_file_device(const std::string& path,
                                                 const FileDeviceOptions& options) {
  if (options.create && options.read_only) {
    return Status(Code::invalid_argument, path, " can't be created read-only");
  }
  Result<FileHandle> handle = open_handle(path, options);
  if (!handle.ok()) return handle.status();
  Result<std::unique_ptr<Device>> device = open_opened(handle.take(), path, options);
  if (!device.ok() && options.create) (void)remove_file(path, options.trust);  // made above, no use
  return device;
}

}  // namespace perdure
