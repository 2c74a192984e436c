// SPDX-License-Identifier: BSD-3-Clause
#include "levels/testing/fault_calls.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdarg>
#include <cstdio>

namespace perdure::faults {
namespace {

Plan plan;
std::atomic<unsigned> count{0};
std::atomic<bool> failing{false};

template <typename Function>
Function real(const char* name) {
  return reinterpret_cast<Function>(::dlsym(RTLD_NEXT, name));
}

bool is_below(const std::string& path) {
  return !plan.below.empty() && path.starts_with(plan.below);
}

bool is_below(int fd) {
  if (plan.below.empty()) return false;
  std::array<char, PATH_MAX> target{};
  const std::string link = "/proc/self/fd/" + std::to_string(fd);
  return ::readlink(link.c_str(), target.data(), target.size() - 1) > 0 && is_below(target.data());
}

enum class Verdict : std::uint8_t { go_on, half, fail };

// What becomes of a call that changes something; `needs_space` fails where the device is full.
Verdict judge(bool needs_space) {
  const bool this_one = ++count == plan.at_call;
  if (this_one && plan.fault == Fault::kill) (void)::raise(SIGKILL);
  if (this_one && plan.fault == Fault::kill_half) return Verdict::half;
  if (this_one && plan.fault == Fault::fail) failing = true;
  const bool concerned = plan.error != ENOSPC || needs_space;
  if (!failing || !concerned) return Verdict::go_on;
  errno = plan.error;
  return Verdict::fail;
}

// For calls that are done or not, and never half.
bool may_go_on(bool needs_space) {
  const Verdict verdict = judge(needs_space);
  if (verdict == Verdict::half) (void)::raise(SIGKILL);
  return verdict != Verdict::fail;
}

}  // namespace

void set_plan(const Plan& wanted) {
  plan = wanted;
  count = 0;
  failing = false;
}

unsigned calls() {
  return count;
}

}  // namespace perdure::faults

using perdure::faults::is_below;
using perdure::faults::judge;
using perdure::faults::may_go_on;
using perdure::faults::plan;
using perdure::faults::real;
using perdure::faults::Verdict;

extern "C" {

ssize_t write(int fd, const void* buffer, size_t bytes) {
  static const auto next = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (!is_below(fd)) return next(fd, buffer, bytes);
  const Verdict verdict = judge(true);
  if (verdict == Verdict::fail) return -1;
  if (verdict == Verdict::go_on) return next(fd, buffer, bytes);
  if (next(fd, buffer, bytes / 2) < 0) std::perror("write");
  return ::raise(SIGKILL);
}

int fsync(int fd) {
  static const auto next = real<int (*)(int)>("fsync");
  return !is_below(fd) || may_go_on(true) ? next(fd) : -1;
}

int renameat(int old_folder, const char* from, int folder, const char* to) noexcept {
  static const auto next = real<int (*)(int, const char*, int, const char*)>("renameat");
  return !is_below(folder) || may_go_on(true) ? next(old_folder, from, folder, to) : -1;
}

int renameat2(int old_folder, const char* from, int folder, const char* to,
              unsigned flags) noexcept {
  static const auto next = real<int (*)(int, const char*, int, const char*, unsigned)>("renameat2");
  if (plan.no_renames_over_nothing && flags != 0 && is_below(folder)) {
    errno = EINVAL;
    return -1;
  }
  return !is_below(folder) || may_go_on(true) ? next(old_folder, from, folder, to, flags) : -1;
}

int linkat(int old_folder, const char* from, int folder, const char* to, int flags) noexcept {
  static const auto next = real<int (*)(int, const char*, int, const char*, int)>("linkat");
  return !is_below(folder) || may_go_on(true) ? next(old_folder, from, folder, to, flags) : -1;
}

int unlinkat(int folder, const char* name, int flags) noexcept {
  static const auto next = real<int (*)(int, const char*, int)>("unlinkat");
  return !is_below(folder) || may_go_on(false) ? next(folder, name, flags) : -1;
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto next = real<int (*)(const char*, mode_t)>("mkdir");
  return !is_below(std::string(path)) || may_go_on(true) ? next(path, mode) : -1;
}

int openat(int folder, const char* name, int flags, ...) {
  static const auto next = real<int (*)(int, const char*, int, ...)>("openat");
  va_list arguments;
  va_start(arguments, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(arguments, mode_t) : 0;
  va_end(arguments);
  const bool changes = (flags & O_CREAT) != 0 && is_below(folder);
  return !changes || may_go_on(true) ? next(folder, name, flags, mode) : -1;
}

}  // extern "C"
