#include "energy/state_directory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "base/clock.hpp"
#include "energy/sysfs.hpp"

namespace perdure::energy {
namespace {

constexpr const char* lock_name = "/lock";

bool may_use(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) == 0) {
    return S_ISDIR(status.st_mode) && ::access(directory.c_str(), R_OK | W_OK | X_OK) == 0;
  }
  const std::string parent = std::filesystem::path(directory).parent_path();
  return ::geteuid() == 0 && ::access(parent.c_str(), W_OK | X_OK) == 0;
}

// In /dev/shm everybody may make a directory of any name: it must be this user's own.
Status make_directory(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) == 0) return Status::success();
  if (errno != EEXIST) return errno_status("make " + directory, errno);
  struct stat status{};
  if (::lstat(directory.c_str(), &status) != 0) return errno_status("stat " + directory, errno);
  const bool shared = directory.find("/dev/shm/") != std::string::npos;
  if (!S_ISDIR(status.st_mode) || (shared && status.st_uid != ::geteuid())) {
    return {Code::foreign, directory +
                               " is not a directory of this user; have it removed, or "
                               "set PERDURE_ENERGY_STATE to another one"};
  }
  return Status::success();
}

// As make_directory() makes it; an administrator's has another mode, and stays.
bool was_made_here(const std::string& directory) {
  struct stat status{};
  return ::lstat(directory.c_str(), &status) == 0 && status.st_uid == ::geteuid() &&
         (status.st_mode & 07777U) == 0700;
}

// The file behind `fd` is still the one with that name.
bool is_same_file(int fd, const std::string& path) {
  struct stat held{};
  struct stat named{};
  return ::fstat(fd, &held) == 0 && ::stat(path.c_str(), &named) == 0 &&
         held.st_ino == named.st_ino && held.st_dev == named.st_dev;
}

}  // namespace

std::string state_directory() {
  const char* given = std::getenv("PERDURE_ENERGY_STATE");
  if (given != nullptr && *given != '\0') return given;
  const std::string root = sysfs_root();
  if (const std::string run = root + "/run/perdure-energy"; may_use(run)) return run;
  return root + "/dev/shm/perdure-energy-" + std::to_string(::geteuid());
}

Result<StateLock> StateLock::take(const std::string& directory, std::uint32_t wait_ms) {
  const std::uint64_t deadline_ns = monotonic_ns() + std::uint64_t{wait_ms} * 1'000'000;
  const std::string path = directory + lock_name;
  for (;;) {
    PERDURE_TRY(make_directory(directory));
    const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0660);
    const int failed = fd < 0 ? errno : 0;
    if (fd < 0 && failed != ENOENT) return errno_status("open " + path, failed);
    if (fd >= 0 && ::flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(fd, path)) {
      return StateLock(directory, fd);
    }
    if (fd >= 0) ::close(fd);
    if (monotonic_ns() >= deadline_ns) {
      return Status(Code::busy, path + " is held by another process for more than " +
                                    std::to_string(wait_ms) + " ms; see who with `fuser " + path +
                                    "`");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

StateLock::StateLock(StateLock&& other) noexcept
    : directory_(std::move(other.directory_)), fd_(std::exchange(other.fd_, -1)) {}

// The name goes before the lock does: who waits for it sees that its file is not the one any more.
StateLock::~StateLock() {
  if (fd_ < 0) return;
  std::error_code error;
  auto entries = std::filesystem::directory_iterator(directory_, error);
  if (!error && std::distance(begin(entries), end(entries)) == 1) {
    ::unlink((directory_ + lock_name).c_str());
    if (was_made_here(directory_)) ::rmdir(directory_.c_str());
  }
  ::close(fd_);
}

Status replace_file(const std::string& path, const std::string& text) {
  const std::string fresh = path + ".new";
  const int fd = ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0660);
  if (fd < 0) return errno_status("open " + fresh, errno);
  std::size_t done = 0;
  int failed = 0;
  while (done < text.size() && failed == 0) {
    const ssize_t count = ::write(fd, text.data() + done, text.size() - done);
    if (count >= 0) done += static_cast<std::size_t>(count);
    if (count < 0 && errno != EINTR) failed = errno;
  }
  if (failed == 0 && ::fsync(fd) != 0) failed = errno;
  ::close(fd);
  if (failed == 0 && ::rename(fresh.c_str(), path.c_str()) != 0) failed = errno;
  if (failed != 0) {
    ::unlink(fresh.c_str());
    return errno_status("write " + path, failed);
  }
  const std::string parent = std::filesystem::path(path).parent_path();
  const int directory = ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return errno_status("open " + parent, errno);
  if (::fsync(directory) != 0) failed = errno;
  ::close(directory);
  return failed == 0 ? Status::success() : errno_status("sync " + parent, failed);
}

Result<std::string> read_file(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) return std::string();
  if (fd < 0) return errno_status("open " + path, errno);
  std::string text;
  std::array<char, 65536> buffer{};
  for (;;) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    const int failed = count < 0 ? errno : 0;
    if (count <= 0) {
      ::close(fd);
      if (failed != 0) return errno_status("read " + path, failed);
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace perdure::energy
