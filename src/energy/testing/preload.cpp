// SPDX-License-Identifier: BSD-3-Clause
//
// libperdure_fake_sysfs.so: below a program (LD_PRELOAD), what lies under $PERDURE_SYSFS_ROOT/sys
// behaves as a FakeTree does, for every process that inherits the environment.
//
//   PERDURE_FAKE_KILL=N         SIGKILL to itself in place of call N of those that change
//                               something below the root: write, fsync, renameat, unlinkat,
//                               mkdir, rmdir
//   PERDURE_FAKE_KILL=N:half    half of the write is done before
//   PERDURE_FAKE_COUNT=FILE     how many such calls there were is written there at the end
//
// perf_event_open of the fake's type opens ROOT/perf/CONFIG.
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/quantity.hpp"
#include "energy/testing/fake_tree.hpp"

namespace {

using perdure::energy::fake::FakeTree;

thread_local bool inside = false;  // the fake's own calls go to the kernel
std::atomic<unsigned> changes{0};

struct Inside {
  Inside() { inside = true; }
  ~Inside() { inside = false; }
};

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

FakeTree& tree() {
  static FakeTree* made = new FakeTree(perdure::energy::sysfs_root());
  return *made;
}

// Below the root, or "".
std::string inside_root(const char* path) {
  const std::string root = tree().root() + "/";
  return root.size() > 1 && std::strncmp(path, root.c_str(), root.size()) == 0
             ? std::string(path + root.size())
             : std::string();
}

std::string path_of(int fd) {
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  if (::readlink(link.c_str(), target.data(), target.size() - 1) < 0) return {};
  return inside_root(target.data());
}

bool is_kernels(const std::string& path) {
  return path.starts_with("sys/") || path.starts_with("perf/");
}

// Dies if this is the call to die in; true: after half of it.
bool count_change() {
  const unsigned number = ++changes;
  const char* wanted = std::getenv("PERDURE_FAKE_KILL");
  if (wanted == nullptr || number != static_cast<unsigned>(std::atoi(wanted))) return false;
  if (std::strstr(wanted, ":half") != nullptr) return true;
  ::raise(SIGKILL);
  return false;
}

__attribute__((destructor)) void tell_count() {
  const char* file = std::getenv("PERDURE_FAKE_COUNT");
  if (file == nullptr) return;
  const Inside here;
  const std::string text = std::to_string(changes.load());
  const int fd = ::open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return;
  if (real<ssize_t (*)(int, const void*, size_t)>("write")(fd, text.data(), text.size()) < 0) {
    std::perror(file);
  }
  ::close(fd);
}

ssize_t give(int fd, void* buffer, size_t count, const perdure::energy::SysfsText& got,
             bool binary) {
  if (!got.ok()) {
    errno = got.error_number;
    return -1;
  }
  if (binary) {  // a counter of perf: 8 bytes, at every read
    const std::uint64_t number = perdure::number_in<std::uint64_t>(got.text).value_or(0);
    if (count < sizeof number) return 0;
    std::memcpy(buffer, &number, sizeof number);
    return sizeof number;
  }
  if (::lseek(fd, 0, SEEK_CUR) != 0) return 0;
  const std::string text = got.text + "\n";
  const size_t given = std::min(count, text.size());
  std::memcpy(buffer, text.data(), given);
  ::lseek(fd, static_cast<off_t>(given), SEEK_SET);
  return static_cast<ssize_t>(given);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) ssize_t write(int fd, const void* buffer, size_t count) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (inside || fd < 3) return next(fd, buffer, count);
  const Inside here;
  const std::string path = path_of(fd);
  if (path.empty()) return next(fd, buffer, count);
  if (count_change()) {
    if (!is_kernels(path) && next(fd, buffer, count / 2) < 0) std::perror("write");
    ::raise(SIGKILL);
  }
  if (!is_kernels(path)) return next(fd, buffer, count);
  const int failed = tree().write(path, std::string(static_cast<const char*>(buffer), count));
  if (failed == 0) return static_cast<ssize_t>(count);
  errno = failed;
  return -1;
}

__attribute__((visibility("default"))) ssize_t read(int fd, void* buffer, size_t count) {
  static const auto next = real<ssize_t (*)(int, void*, size_t)>("read");
  if (inside || fd < 3) return next(fd, buffer, count);
  const Inside here;
  const std::string path = path_of(fd);
  if (!is_kernels(path)) return next(fd, buffer, count);
  const auto got = tree().read(path);
  return got ? give(fd, buffer, count, *got, path.starts_with("perf/")) : next(fd, buffer, count);
}

__attribute__((visibility("default"))) int access(const char* path, int mode) {
  static const auto next = real<int (*)(const char*, int)>("access");
  if (inside || (mode & W_OK) == 0) return next(path, mode);
  const Inside here;
  const std::string within = inside_root(path);
  if (!within.starts_with("sys/") || tree().writable(within)) return next(path, mode);
  errno = EACCES;
  return -1;
}

__attribute__((visibility("default"))) int fsync(int fd) {
  static const auto next = real<int (*)(int)>("fsync");
  if (inside) return next(fd);
  const Inside here;
  if (!path_of(fd).empty()) count_change();
  return next(fd);
}

__attribute__((visibility("default"))) int renameat(int old_folder, const char* from, int folder,
                                                    const char* to) {
  static const auto next = real<int (*)(int, const char*, int, const char*)>("renameat");
  if (inside) return next(old_folder, from, folder, to);
  const Inside here;
  if (!path_of(folder).empty()) count_change();
  return next(old_folder, from, folder, to);
}

__attribute__((visibility("default"))) int unlinkat(int folder, const char* name, int flags) {
  static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
  if (inside) return next(folder, name, flags);
  const Inside here;
  if (!path_of(folder).empty()) count_change();
  return next(folder, name, flags);
}

__attribute__((visibility("default"))) int rmdir(const char* path) {
  static const auto next = real<int (*)(const char*)>("rmdir");
  if (inside) return next(path);
  const Inside here;
  if (!inside_root(path).empty()) count_change();
  return next(path);
}

__attribute__((visibility("default"))) int mkdir(const char* path, mode_t mode) {
  static const auto next = real<int (*)(const char*, mode_t)>("mkdir");
  if (inside) return next(path, mode);
  const Inside here;
  if (!inside_root(path).empty()) count_change();
  return next(path, mode);
}

__attribute__((visibility("default"))) long syscall(long number, ...) {
  static const auto next = real<long (*)(long, ...)>("syscall");
  va_list arguments;
  va_start(arguments, number);
  std::array<long, 6> words{};
  for (long& word : words) word = va_arg(arguments, long);
  va_end(arguments);
  if (inside || number != SYS_perf_event_open) {
    return next(number, words[0], words[1], words[2], words[3], words[4], words[5]);
  }
  const Inside here;
  const auto* wanted = reinterpret_cast<const perf_event_attr*>(words[0]);
  std::array<char, 32> name{};
  std::snprintf(name.data(), name.size(), "perf/0x%llx",
                static_cast<unsigned long long>(wanted->config));
  return ::open((tree().root() + "/" + name.data()).c_str(), O_RDONLY | O_CLOEXEC);
}

}  // extern "C"
