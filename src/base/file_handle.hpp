// SPDX-License-Identifier: BSD-3-Clause
//
// An open file descriptor, closed once; and its exclusive lock.
//
// It lies above 2. In a process whose standard input, output or error is closed the kernel gives
// their numbers to the next files that are opened, and a message on stderr would be written there.
//
// The lock is flock(2). An fcntl() lock would name its holder, but is lost as soon as any other
// descriptor of the file is closed in this process, and doesn't keep the process from itself; an
// open-file-description lock keeps, but names nobody. flock keeps, and /proc/locks names.
// A process that is forked off loses it (fork_guard.hpp), so what is locked is not mapped.
//
// A directory is never locked: whoever may read it could, and nobody could take that away.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.hpp"

namespace perdure {

// The descriptor, or what it was exchanged for if it is 0 to 2: one above, closed when another
// program is executed. -1, and errno set, if that fails; then `fd` is closed.
int above_standard(int fd);

class FileHandle {
 public:
  // Of 0 to 2 a number above them is made. The handle is -1, and errno set, where that fails.
  explicit FileHandle(int fd = -1) : fd_(above_standard(fd)) {}
  FileHandle(FileHandle&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileHandle& operator=(FileHandle&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  ~FileHandle();

  int fd() const { return fd_; }
  // The caller closes it.
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

enum class FileLock : std::uint8_t { shared, alone };
// Whether the lock was granted for this descriptor; it is not waited for. Code::unsupported where
// the file system has no locks.
Result<bool> try_lock_file(int fd, FileLock lock, const std::string& path);
void unlock_file(int fd);

struct LockPatience {
  std::uint32_t wait_ms = 10'000;
  std::uint32_t working_ms = 0;  // if more: for a holder that is seen to run
  bool own_at_once = false;      // a lock that this process holds itself is not waited for
};
// Locks the file for this descriptor alone. Another holder is waited for; then Code::busy names it,
// as far as /proc/locks shows it.
Status lock_file(int fd, const std::string& path, const LockPatience& patience);

// fsync of the directory that holds `path`, without which a new file may vanish with the power.
Status sync_directory_of(const std::string& path);

}  // namespace perdure
