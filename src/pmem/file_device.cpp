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
#include "pmem/written_back_file.hpp"

namespace perdure {
namespace {

bool is_memory_file_system(int fd) {
  struct statfs file_system{};
  if (::fstatfs(fd, &file_system) != 0) return false;
  return file_system.f_type == TMPFS_MAGIC || file_system.f_type == RAMFS_MAGIC;
}

Status dax_refused(const std::string& path, int error_number) {
  return {Code::unsupported,
          path + " can't be mapped with MAP_SYNC (" + std::strerror(error_number) +
              "): it is not on a DAX file system; mount one with -o dax on persistent memory, or "
              "let the kind be chosen automatically"};
}

// Fills in kind and persistence class.
Status classify(OpenFile& file, FileKind wanted) {
  const bool in_memory = is_memory_file_system(file.handle.fd());
  file.persistence = in_memory ? PersistenceClass::process_crash : PersistenceClass::power_failure;
  file.kind = wanted;
  if (wanted == FileKind::ordinary) return Status::success();
  if (wanted == FileKind::tmpfs && !in_memory) {
    return {Code::unsupported, file.path +
                                   " is not on a tmpfs; choose a directory such as "
                                   "/dev/shm, or let the kind be chosen automatically"};
  }
  if (wanted == FileKind::tmpfs) return Status::success();
  const int refused = probe_map_sync(file.handle.fd(), file.read_only);
  if (refused != 0 && wanted == FileKind::dax) return dax_refused(file.path, refused);
  file.kind = refused == 0 ? FileKind::dax : in_memory ? FileKind::tmpfs : FileKind::ordinary;
  return Status::success();
}

Status open_failed(const std::string& path, const FileDeviceOptions& options, int error_number) {
  const std::string text = "open " + path + ": " + std::strerror(error_number);
  switch (error_number) {
    case ENOENT:
      return {Code::not_found, text + (options.create ? "; make its directory first"
                                                      : "; there is no such pool file, create it")};
    case EEXIST:
      return {Code::wrong_state, text + "; open it without creating it, or remove it first"};
    case EISDIR:
      return {Code::invalid_argument, text + "; name a file, not a directory"};
    case EACCES:
    case EPERM:
    case EROFS:
      return {Code::io_error, text + "; choose a path that this user may write, or open read-only"};
    default:
      return errno_status("open " + path, error_number);
  }
}

Result<FileHandle> open_handle(const std::string& path, const FileDeviceOptions& options) {
  const int access = options.read_only ? O_RDONLY : O_RDWR;
  const int create = options.create ? O_CREAT | O_EXCL : 0;
  int fd = -1;
  do {
    fd = ::open(path.c_str(), access | create | O_CLOEXEC, 0666);
  } while (fd < 0 && errno == EINTR);
  if (fd < 0) return open_failed(path, options, errno);
  FileHandle handle(fd);
  struct stat status{};
  if (::fstat(fd, &status) != 0) return errno_status("fstat " + path, errno);
  if (!S_ISREG(status.st_mode)) {
    return Status(Code::invalid_argument, path + " is not a regular file; name one");
  }
  return handle;
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
  if (options.shared && options.create) {
    if (::ftruncate(file.handle.fd(), static_cast<off_t>(options.sparse_bytes)) != 0) {
      return errno_status(
          "make " + path + " of " + std::to_string(options.sparse_bytes) + " bytes with holes",
          errno);
    }
  }
  if (!options.read_only && !options.shared) {
    PERDURE_TRY(lock_file(file.handle.fd(), path, options.lock_wait_ms));
  }
  PERDURE_TRY(classify(file, options.kind));
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
    return Status(Code::invalid_argument, path + " can't be created read-only");
  }
  Result<FileHandle> handle = open_handle(path, options);
  if (!handle.ok()) return handle.status();
  Result<std::unique_ptr<Device>> device = open_opened(handle.take(), path, options);
  if (!device.ok() && options.create) ::unlink(path.c_str());  // created above, and of no use
  return device;
}

}  // namespace perdure
