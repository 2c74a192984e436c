// SPDX-License-Identifier: BSD-3-Clause
//
// An open file descriptor, closed once; and its exclusive lock.
//
// The lock is flock(2). An fcntl() lock would name its holder, but is lost as soon as any other
// descriptor of the file is closed in this process, and doesn't keep the process from itself; an
// open-file-description lock keeps, but names nobody. flock keeps, and /proc/locks names.
// A process that was forked off without exec shares the descriptor, and so keeps the lock until it
// ends too: it still has the mapping.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "base/status.hpp"

namespace perdure {

class FileHandle {
 public:
  explicit FileHandle(int fd = -1) : fd_(fd) {}
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

// Locks the file for this descriptor. A lock that another holds is waited for at most `wait_ms`;
// then Code::busy names the holder, as far as /proc/locks shows it.
Status lock_file(int fd, const std::string& path, std::uint32_t wait_ms);

// fsync of the directory that holds `path`, without which a new file may vanish with the power.
Status sync_directory_of(const std::string& path);

}  // namespace perdure
