// SPDX-License-Identifier: BSD-3-Clause
#include "energy/owner.hpp"

#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <string_view>

#include "base/files.hpp"
#include "base/quantity.hpp"

namespace perdure::energy {
namespace {

// The namespace of processes that the kernel begins with (PROC_PID_INIT_INO in its proc_ns.h).
// Processes of all others are seen from it, and from no other.
constexpr std::uint64_t first_namespace = 0xeffffffcU;

// 0: no process, or one that is dead and was not waited for.
std::uint64_t start_ticks_of(const std::string& proc, std::int64_t pid) {
  const auto stat = read_process_stat(proc + "/" + std::to_string(pid));
  return stat && !stat->has_ended() ? stat->start_ticks : 0;
}

// The number in "pid:[4026531836]"; 0, and errno set, where it can't be read.
std::uint64_t namespace_of(const std::string& proc, const std::string& process) {
  constexpr std::string_view begin = "pid:[";
  std::array<char, 64> text{};
  const std::string path = proc + "/" + process + "/ns/pid";
  const ssize_t length = ::readlink(path.c_str(), text.data(), text.size());
  if (length < 0) return 0;
  const std::string_view target(text.data(), static_cast<std::size_t>(length));
  errno = EINVAL;
  if (!target.starts_with(begin) || !target.ends_with(']')) return 0;
  const auto digits = target.substr(begin.size(), target.size() - begin.size() - 1);
  return number_in<std::uint64_t>(digits).value_or(0);
}

bool is_number(const std::string& name) {
  return name.find_first_not_of("0123456789") == std::string::npos;
}

}  // namespace

Owner this_process() {
  static std::atomic<std::uint64_t> serial{0};
  Owner owner = process_of(::getpid());
  owner.serial = ++serial;
  return owner;
}

Owner process_of(std::int64_t pid) {
  const std::uint64_t ticks = start_ticks_of("/proc", pid);
  if (ticks == 0) return {};
  return {pid, ticks, namespace_of("/proc", "self"), 0, false};
}

// Each namespace has a first process as long as it has any, and that one doesn't come or go while
// the others are looked at. Process 1 is what a mount with hidepid hides from all but root.
std::optional<std::set<std::uint64_t>> Processes::find_namespaces() const {
  if (namespace_of(proc_, "self") != first_namespace) return std::nullopt;
  if (namespace_of(proc_, "1") != first_namespace) return std::nullopt;
  std::set<std::uint64_t> found;
  for (const std::string& name : kernel_names(proc_)) {
    if (!is_number(name)) continue;
    const std::uint64_t number = namespace_of(proc_, name);
    if (number == 0 && errno != ENOENT && errno != ESRCH) return std::nullopt;
    found.insert(number);
  }
  if (!found.contains(first_namespace)) return std::nullopt;  // the folder could not be read
  return found;
}

bool Processes::is_alive(const Owner& owner) {
  if (owner.lasting) return true;
  if (owner.pid_namespace == namespace_of(proc_, "self")) {
    return start_ticks_of(proc_, owner.pid) == owner.start_ticks;
  }
  if (!looked_) namespaces_ = find_namespaces();
  looked_ = true;
  return !namespaces_ || namespaces_->contains(owner.pid_namespace);
}

}  // namespace perdure::energy
