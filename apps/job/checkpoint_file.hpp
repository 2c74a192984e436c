// SPDX-License-Identifier: BSD-3-Clause
//
// Checkpoint file: what the protections compare a pool with. Errors are std::runtime_error.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <string>

namespace job {

// Throws `what` and the text of errno.
[[noreturn]] inline void fail(const std::string& what) {
  throw std::runtime_error(what + ": " + std::strerror(errno));
}

class CheckpointFile {
 public:
  CheckpointFile(const std::string& path, int flags) : path_(path) {
    fd_ = ::open(path.c_str(), flags | O_CLOEXEC, 0644);
    if (fd_ < 0) fail("open " + path);
  }
  ~CheckpointFile() { ::close(fd_); }
  CheckpointFile(const CheckpointFile&) = delete;
  CheckpointFile& operator=(const CheckpointFile&) = delete;

  void write(const void* from, std::size_t count) {
    for (const char* at = static_cast<const char*>(from); count > 0;) {
      const ssize_t written = ::write(fd_, at, count);
      if (written < 0) fail("write " + path_);
      at += written;
      count -= static_cast<std::size_t>(written);
    }
  }
  void read(void* to, std::size_t count) {
    for (char* at = static_cast<char*>(to); count > 0;) {
      const ssize_t got = ::read(fd_, at, count);
      if (got < 0) fail("read " + path_);
      if (got == 0) throw std::runtime_error(path_ + " is too short");
      at += got;
      count -= static_cast<std::size_t>(got);
    }
  }
  void sync() {
    if (::fsync(fd_) != 0) fail("fsync " + path_);
  }

 private:
  std::string path_;
  int fd_;
};

}  // namespace job
