// SPDX-License-Identifier: BSD-3-Clause
#include "base/file_handle.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"

namespace perdure {
namespace {

constexpr std::chrono::milliseconds lock_poll{2};

// The pid that holds the flock of this inode, or 0. A line of /proc/locks reads
// "7: FLOCK  ADVISORY  WRITE 4711 00:1a:5678 0 EOF"; waiters have "->" after the number.
int lock_holder(int fd) {
  struct stat file{};
  if (::fstat(fd, &file) != 0) return 0;
  char inode[64];
  std::snprintf(inode, sizeof inode, "%02x:%02x:%ju", major(file.st_dev), minor(file.st_dev),
                static_cast<std::uintmax_t>(file.st_ino));
  std::istringstream locks(read_kernel_text("/proc/locks"));
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number, kind, advisory, access, place;
    int pid = 0;
    if (words >> number >> kind >> advisory >> access >> pid >> place && kind == "FLOCK" &&
        place == inode && pid > 0) {
      return pid;
    }
  }
  return 0;
}

Status busy_status(int fd, const std::string& path, std::uint32_t wait_ms) {
  const int pid = lock_holder(fd);
  std::string holder = pid > 0 ? "process " + std::to_string(pid) : "another process";
  if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) {
    holder = "a process that was forked off by process " + std::to_string(pid) +
             ", which has ended (`fuser " + path + "` names it)";
  }
  return Status(Code::busy, path, " is open in ", holder, ", and was not released within ", wait_ms,
                " ms; end that process, or wait for it");
}

}  // namespace

FileHandle::~FileHandle() {
  if (fd_ >= 0) ::close(fd_);  // nothing was buffered: an error here can't lose bytes
}

Status lock_file(int fd, const std::string& path, std::uint32_t wait_ms) {
  const std::uint64_t give_up_ns = monotonic_ns() + std::uint64_t{wait_ms} * 1'000'000;
  while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK) return errno_status("flock " + path, errno);
    if (monotonic_ns() >= give_up_ns) return busy_status(fd, path, wait_ms);
    std::this_thread::sleep_for(lock_poll);
  }
  return Status::success();
}

Status sync_directory_of(const std::string& path) {
  auto directory = Directory::open(split_path(path).directory, Trust::anyone);
  return directory.ok() ? directory.value().sync() : directory.status();
}

}  // namespace perdure
