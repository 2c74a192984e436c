// SPDX-License-Identifier: BSD-3-Clause
//
// Process barrier: one thread has all running threads of the processes that registered pass a full
// memory fence, so that they need none of their own (membarrier(2), GLOBAL_EXPEDITED, Linux 4.16).
//
// A thread stores x and then loads y, with only the compiler kept from reordering them; another
// stores y, calls process_barrier(), and loads x. Then one of them sees what the other stored.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perdure {

// Before the process relies on the barriers of others. False: the kernel, or a filter of system
// calls, has none.
inline bool join_process_barriers() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

// About a microsecond. False as above.
inline bool process_barrier() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

}  // namespace perdure
