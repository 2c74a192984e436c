// SPDX-License-Identifier: BSD-3-Clause
#include "base/file_handle.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <sstream>
#include <thread>

#include "base/clock.hpp"
#include "base/files.hpp"
#include "base/fork_guard.hpp"

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

// Not where it can't be seen, as from another PID namespace.
bool is_running(int pid) {
  const auto stat = read_process_stat("/proc/" + std::to_string(pid));
  return stat && !stat->has_ended() && stat->state != 'T' && stat->state != 't';
}

Status busy_status(int pid, const std::string& path, std::uint64_t waited_ms) {
  std::string holder = pid > 0 ? "process " + std::to_string(pid) : "another process";
  std::string remedy = "; end that process, or wait for it";
  if (pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH) {
    holder = "a process that was forked off by process " + std::to_string(pid) +
             ", which has ended (`fuser " + path + "` names it)";
  } else if (pid > 0 && !is_running(pid)) {
    holder += ", which is stopped";
    remedy = "; let it go on (kill -CONT " + std::to_string(pid) + "), or end it";
  }
  const std::string waited =
      waited_ms == 0 ? "" : sentence(", and was not released within ", waited_ms, " ms");
  return Status(Code::busy, path, " is open in ", holder, waited, remedy);
}

Status own_status(const std::string& path) {
  return Status(Code::busy, path,
                " is open in this process already, and can be once only; close it there first, or "
                "go on with what is open");
}

// 524: ENOTSUPP, which is the kernel's own and has no text.
Status lock_refused(const std::string& path, int error) {
  constexpr int kernels_own = 524;
  const bool none = error == ENOLCK || error == EOPNOTSUPP || error == ENOSYS || error == EINVAL ||
                    error == kernels_own;
  if (!none) return errno_status("flock " + path, error);
  return Status(Code::unsupported, path, ": this file system has no locks (flock: error ", error,
                "), without which two jobs could write to the file at once; choose a directory in "
                "node-local memory or on a local disk, or have the file system mounted with locks "
                "(Lustre: -o flock; NFS: its lock service)");
}

}  // namespace

int above_standard(int fd) {
  if (fd < 0 || fd > STDERR_FILENO) return fd;
  const int above = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  const int failed = errno;
  ::close(fd);
  errno = failed;
  return above;
}

FileHandle::~FileHandle() {
  if (fd_ < 0) return;
  shared_with_children(fd_);
  ::close(fd_);  // nothing was buffered: an error here can't lose bytes
}

Result<bool> try_lock_file(int fd, FileLock lock, const std::string& path) {
  keep_from_children(fd);
  while (::flock(fd, (lock == FileLock::alone ? LOCK_EX : LOCK_SH) | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return false;
    if (errno != EINTR) return lock_refused(path, errno);
  }
  return true;
}

void unlock_file(int fd) {
  ::flock(fd, LOCK_UN);
}

Status lock_file(int fd, const std::string& path, const LockPatience& patience) {
  const std::uint64_t begin_ns = monotonic_ns();
  std::uint64_t wait_ms = patience.wait_ms;
  for (bool first = true;; first = false) {
    PERDURE_TRY_ASSIGN(const bool granted, try_lock_file(fd, FileLock::alone, path));
    if (granted) return Status::success();
    if (first && patience.own_at_once && lock_holder(fd) == ::getpid()) return own_status(path);
    if (monotonic_ns() - begin_ns >= wait_ms * 1'000'000) {
      const int pid = lock_holder(fd);
      if (wait_ms >= patience.working_ms || pid <= 0 || !is_running(pid)) {
        return busy_status(pid, path, wait_ms);
      }
      wait_ms += std::max<std::uint64_t>(patience.wait_ms, 1);
    }
    std::this_thread::sleep_for(lock_poll);
  }
}

Status sync_directory_of(const std::string& path) {
  auto directory = Directory::open(split_path(path).directory, Trust::anyone);
  return directory.ok() ? directory.value().sync() : directory.status();
}

}  // namespace perdure
