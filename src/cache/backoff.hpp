// SPDX-License-Identifier: BSD-3-Clause
//
// Waits for another process: soon it may be done, or it reads from a slow file system, or it has
// died.
#pragma once

#include <sched.h>
#include <unistd.h>

namespace perdure {

class Backoff {
 public:
  // Waits a little. Whether it is time to check that the other is still alive: about every 10 ms.
  bool wait() {
    if (++waits_ < 64) {
      ::sched_yield();
      return false;
    }
    ::usleep(100);
    return waits_ % 64 == 0;
  }

 private:
  unsigned waits_ = 0;
};

}  // namespace perdure
