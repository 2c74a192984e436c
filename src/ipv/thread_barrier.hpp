// SPDX-License-Identifier: BSD-3-Clause
//
// Thread barrier: one thread has all running threads of its process pass a full memory fence, so
// that they need none of their own (membarrier(2), PRIVATE_EXPEDITED, Linux 4.14).
//
// A thread stores x and then loads y, with only the compiler kept from reordering them; another
// stores y, calls thread_barrier(), and loads x. Then one of them sees what the other stored.
//
// There is none between processes here: GLOBAL_EXPEDITED leaves processors out (Linux 6.18 and
// before). A processor that idles keeps the memory map of the process that it ran last. If that
// process registers on another processor meanwhile and comes back, the switch finds the map in
// place, doesn't look at the registration, and barriers pass this processor by. PRIVATE_EXPEDITED
// asks which process a processor runs.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perdure {

// Before a thread relies on the barriers of others. False: the kernel, or a filter of system
// calls, has none. Takes 10 ms where the process has other threads.
inline bool join_thread_barriers() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

// Some microseconds. False as above.
inline bool thread_barrier() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

}  // namespace perdure
