// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "base/clock.hpp"
#include "cache/part_directory.hpp"
#include "cache/part_note.hpp"
#include "cache/part_run_note.hpp"
#include "pmem/file_device.hpp"

namespace perdure {
namespace {

constexpr int dying_wait_ms = 30000;
// A recovery writes back what may be gigabytes.
constexpr LockPatience directory_patience{.wait_ms = 10'000, .working_ms = 600'000};

// Users may share a directory, if it is sticky, and each has a lock there. Whoever else is let into
// a directory of one takes that one's lock.
std::string lock_name(const Directory& directory) {
  struct stat found{};
  const bool shared = ::fstat(directory.fd(), &found) != 0 || (found.st_mode & S_ISVTX) != 0;
  return "lock-" + std::to_string(shared ? ::geteuid() : found.st_uid);
}

// Pretended nodes have their directories in that of the machine.
Result<Directory> open_directory(const std::string& directory, bool make) {
  if (!make) return Directory::open(directory, part_trust());
  const PathParts parts = split_path(directory);
  if (!parts.name.starts_with("node-")) return Directory::make(directory, part_trust());
  return Directory::make_below(parts.directory, parts.name, part_trust());
}

// Not found: the directory was removed meanwhile.
Result<FileHandle> take_lock(const Directory& directory) {
  const std::string name = lock_name(directory);
  for (;;) {
    PERDURE_TRY_ASSIGN(auto lock, directory.open_or_create(name));
    PERDURE_TRY(lock_file(lock.fd(), directory.path_of(name), directory_patience));
    if (directory.is_file(lock.fd(), name)) return lock;  // else its holder took it away
  }
}

}  // namespace

BootId boot_id() {
  BootId id;
  std::string text = read_kernel_text("/proc/sys/kernel/random/boot_id");
  std::erase_if(text, [](char letter) { return letter == '-' || letter == '\n'; });
  if (text.size() != 32) return id;
  id.words[0] = std::stoull(text.substr(0, 16), nullptr, 16);
  id.words[1] = std::stoull(text.substr(16), nullptr, 16);
  return id;
}

bool is_same_boot(const PartHeaderFormat& header) {
  static const BootId now = boot_id();
  return std::memcmp(header.boot, now.words, sizeof header.boot) == 0;
}

std::uint64_t boot_time_ns() {
  timespec up{};
  if (::clock_gettime(CLOCK_BOOTTIME, &up) != 0) return 0;
  const std::uint64_t now = wall_clock_ns();
  const std::uint64_t running = static_cast<std::uint64_t>(up.tv_sec) * 1'000'000'000 +
                                static_cast<std::uint64_t>(up.tv_nsec);
  return now > running ? now - running : 0;
}

Trust part_trust() {
  return trust_unless(false);
}

void LockedDirectory::remove_lock() {
  const std::string name = lock_name(*this);
  // Whoever waits for it sees that its file is not the one any more. What stays does no harm.
  if (lock_.fd() >= 0 && is_file(lock_.fd(), name)) (void)remove_file(name);
}

Result<LockedDirectory> lock_part_directory(const std::string& directory, bool make) {
  while (true) {
    PERDURE_TRY_ASSIGN(auto opened, open_directory(directory, make));
    auto lock = take_lock(opened);
    if (lock.ok()) return LockedDirectory(std::move(opened), lock.take());
    if (opened.exists()) return lock.status();
    if (!make) return Status(Code::not_found, directory, " does not exist");
  }
}

Result<FileHandle> open_part_lock(const std::string& path) {
  return open_file(path, FileAccess::read_write, part_trust());
}

std::string undo_file_path(const std::string& path) {
  return path + ".undo";
}

Result<std::unique_ptr<CachePart>> attach_part_file(const std::string& path) {
  const FileDeviceOptions options{.trust = part_trust(), .shared = true};
  PERDURE_TRY_ASSIGN(auto device, open_file_device(path, options));
  auto part = CachePart::attach(std::move(device));
  if (!part.ok() || !part.value()->with_pool()) return part;
  PERDURE_TRY_ASSIGN(auto undo, open_file_device(undo_file_path(path), options));
  const UndoGeometry geometry = part.value()->undo_geometry();
  if (undo->size_bytes() < geometry.file_bytes()) {
    return Status(Code::damaged, undo_file_path(path), " is truncated");
  }
  part.value()->set_undo_log(std::make_unique<UndoLog>(std::move(undo), geometry));
  return part;
}

// One that was sent SIGKILL does not look so between taking note of it and beginning to end, so it
// is asked twice.
bool all_are_dying(const FileHandle& handle, const std::string& path) {
  for (int times = 0; times < 2; ++times) {
    const auto part = attach_part_file(path);
    if (!part.ok()) return false;  // whoever uses it tells what is wrong with it
    if (part.value()->owners_life(handle) == OwnersLife::dying) return true;
    if (times == 0) ::usleep(2000);
  }
  return false;
}

Result<bool> lock_part_alone(const FileHandle& handle, const std::string& path) {
  for (int waited_ms = 0;; ++waited_ms) {
    auto alone = try_lock_file(handle.fd(), FileLock::alone, path);
    if (!alone.ok() || alone.value()) return alone;
    if (!all_are_dying(handle, path)) return false;
    if (waited_ms > dying_wait_ms) {
      return Status(Code::busy, path,
                    " is held by processes that are being killed and do not end; try again when "
                    "they are gone");
    }
    ::usleep(1000);
  }
}

bool is_unborn(const std::string& path) {
  const auto file = open_file(path, FileAccess::read, part_trust());
  std::uint64_t magic = 0;
  return file.ok() && ::pread(file.value().fd(), &magic, sizeof magic, 0) >= 0 && magic == 0;
}

Status remove_part_files(const std::string& path) {
  remove_part_note(path);  // cache.N1
  PERDURE_TRY(remove_file(path, part_trust()));
  PERDURE_TRY(remove_file(undo_file_path(path), part_trust()));
  forget_part_for_run(path);
  return Status::success();
}

void tidy_part_directory(LockedDirectory& locked) {
  const std::string ours = default_part_directory();
  const std::string directory = locked.path();
  if (!directory.starts_with(ours)) return;
  locked.remove_lock();
  if (directory != ours) remove_directory(directory);
  remove_directory(ours);
}

}  // namespace perdure
