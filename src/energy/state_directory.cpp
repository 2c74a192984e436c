// SPDX-License-Identifier: BSD-3-Clause
#include "energy/state_directory.hpp"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/clock.hpp"
#include "base/environment.hpp"
#include "energy/sysfs.hpp"

namespace perdure::energy {
namespace {

constexpr const char* lock_name = "lock";

bool may_use(const std::string& directory) {
  struct stat status{};
  if (::stat(directory.c_str(), &status) == 0) {
    return S_ISDIR(status.st_mode) && ::access(directory.c_str(), R_OK | W_OK | X_OK) == 0;
  }
  const std::string parent = std::filesystem::path(directory).parent_path();
  return ::geteuid() == 0 && ::access(parent.c_str(), W_OK | X_OK) == 0;
}

// As take() makes it; an administrator's has another mode, and stays.
bool was_made_here(const Directory& directory) {
  struct stat status{};
  return ::fstat(directory.fd(), &status) == 0 && status.st_uid == ::geteuid() &&
         (status.st_mode & 07777U) == 0700;
}

// The lock's file in the directory as it is now; its handle is -1 where both go at this moment.
Result<FileHandle> open_lock(const Result<Directory>& directory) {
  if (directory.status().code() == Code::not_found) return FileHandle();
  if (!directory.ok()) return directory.status();
  auto file = directory.value().open_or_create(lock_name);
  if (file.status().code() == Code::not_found) return FileHandle();
  return file;
}

}  // namespace

std::string state_directory() {
  if (const std::string given = environment("PERDURE_ENERGY_STATE"); !given.empty()) return given;
  const std::string root = sysfs_root();
  if (const std::string run = root + "/run/perdure-energy"; may_use(run)) return run;
  return root + "/dev/shm/perdure-energy-" + std::to_string(::geteuid());
}

Result<StateLock> StateLock::take(const std::string& directory, std::uint32_t wait_ms) {
  const std::uint64_t deadline_ns = monotonic_ns() + std::uint64_t{wait_ms} * 1'000'000;
  for (;;) {
    auto place = Directory::make(directory, Trust::group);
    PERDURE_TRY_ASSIGN(auto file, open_lock(place));
    const int fd = file.fd();
    if (fd >= 0) {
      PERDURE_TRY_ASSIGN(const bool locked,
                         try_lock_file(fd, FileLock::alone, directory + "/" + lock_name));
      if (locked && place.value().is_file(fd, lock_name)) {
        return StateLock(place.take(), std::move(file));
      }
    }
    if (monotonic_ns() >= deadline_ns) {
      const std::string path = directory + "/" + lock_name;
      return Status(Code::busy, path, " is held by another process for more than ", wait_ms,
                    " ms; see who with `fuser ", path, "`");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

// The name goes before the lock does: who waits for it sees that its file is not the one any more.
StateLock::~StateLock() {
  if (file_.fd() < 0) return;
  const auto names = directory_.names();
  if (!names.ok() || names.value().size() != 1) return;
  (void)directory_.remove_file(lock_name);  // where it stays, the next one takes it
  if (was_made_here(directory_)) (void)remove_directory(directory_.path());
}

}  // namespace perdure::energy
