// Owner: who holds a cap. A process by its number, the moment it was started and its namespace of
// processes, so that a number that was given away again is not taken for the owner.
//
// Threads: any.
#pragma once

#include <cstdint>
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
// False only if the owner is known to be gone: one of another namespace is believed to live.
bool is_alive(const Owner& owner);

}  // namespace perdure::energy
