// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_files.hpp"

#include <sys/file.h>
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

Result<Directory> open_directory(const std::string& directory, bool make) {
  return make ? Directory::make(directory, part_trust()) : Directory::open(directory, part_trust());
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

Result<Directory> lock_part_directory(const std::string& directory, bool make) {
  while (true) {
    auto opened = open_directory(directory, make);
    if (!opened.ok()) {
      if (make && opened.status().code() == Code::not_found) continue;
      return opened;
    }
    while (::flock(opened.value().fd(), LOCK_EX) != 0) {
      if (errno != EINTR) return errno_status("lock directory " + directory, errno);
    }
    if (opened.value().exists()) return opened;
    if (!make) return Status(Code::not_found, directory, " does not exist");
  }
}

Result<bool> try_lock_part(const FileHandle& handle, PartLock lock, const std::string& path) {
  const int kind = lock == PartLock::alone ? LOCK_EX : LOCK_SH;
  while (::flock(handle.fd(), kind | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return errno_status("lock " + path, errno);
  }
  return true;
}

Status unlock_part(const FileHandle& handle, const std::string& path) {
  return ::flock(handle.fd(), LOCK_UN) == 0 ? Status::success()
                                            : errno_status("unlock " + path, errno);
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
    auto alone = try_lock_part(handle, PartLock::alone, path);
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
  forget_part_for_run(path);
  remove_part_note(path);  // N1
  PERDURE_TRY(remove_file(path, part_trust()));
  return remove_file(undo_file_path(path), part_trust());
}

void tidy_part_directory(const std::string& directory) {
  const std::string ours = default_part_directory();
  if (!directory.starts_with(ours)) return;
  if (directory != ours) remove_directory(directory);
  remove_directory(ours);
}

}  // namespace perdure
