// SPDX-License-Identifier: BSD-3-Clause
//
// Owner: who holds a cap. A process by its number, the moment it was started and its namespace of
// processes, so that a number that was given away again is not taken for the owner.
//
// Threads: any; a Processes is one thread's.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace perdure::energy {

struct Owner {
  std::int64_t pid = 0;
  std::uint64_t start_ticks = 0;  // since boot, /proc/PID/stat
  std::uint64_t pid_namespace = 0;
  std::uint64_t serial = 0;  // several caps of one process
  bool lasting = false;      // held until somebody restores, whether the process lives or not
  friend bool operator==(const Owner&, const Owner&) = default;
};

// A new owner of this process: each call gives another serial.
Owner this_process();
// An owner for another process that lives; pid 0 in it: there is none.
Owner process_of(std::int64_t pid);

// The processes of this node, as far as this one can see them.
class Processes {
 public:
  explicit Processes(std::string proc = "/proc") : proc_(std::move(proc)) {}

  // False only if the owner is known to be gone. One of another namespace is, if no process is in
  // that one; only who sees every process of the node, root in its first namespace, can know that.
  bool is_alive(const Owner& owner);

 private:
  std::optional<std::set<std::uint64_t>> find_namespaces() const;

  std::string proc_;
  bool looked_ = false;
  std::optional<std::set<std::uint64_t>> namespaces_;  // in use; nothing: not known
};

}  // namespace perdure::energy
