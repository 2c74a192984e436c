// SPDX-License-Identifier: BSD-3-Clause
//
// Fork guard: distinguishes a process that was forked off from the one that opened something.
//
// A child shares the mapped pages and the sockets of its parent, but none of its threads, and MPI
// allows it no calls. So what the parent has open is not the child's to use: calls are refused
// there, and the parent goes on as if there were no child. A child that opens a pool of its own may
// use that one. Locks stay the parent's alone, so that a worker that outlives it keeps nobody out.
//
// Threads: any. Children of vfork() and posix_spawn() only execute another program: they are not
// recognised.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"

namespace perdure {

// How many forks lie between this process and the first one that asked.
std::uint64_t fork_depth();

// Runs `act` in every child from now on, right after the fork: it may only do what a signal handler
// may. Such functions are never taken back.
void in_forked_children(void (*act)());

// In every child the descriptor becomes one of nothing, right after the fork, so that a lock which
// it holds is the parent's alone. A lock belongs to what was opened: no mapping may be of the same.
// Until shared_with_children(), which FileHandle calls when it closes.
void keep_from_children(int fd);
void shared_with_children(int fd);

class ForkGuard {
 public:
  ForkGuard() : depth_(fork_depth()) {}
  bool in_child() const { return fork_depth() != depth_; }
  // Code::wrong_state in a child; `what` is what was opened: "pool /mnt/pmem/heat".
  Status check(const std::string& what) const;

 private:
  std::uint64_t depth_;
};

}  // namespace perdure
