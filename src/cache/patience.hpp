// Waits for another process: soon it may be done, or it reads from a slow file system, or it has
// died.
#pragma once

#include <sched.h>
#include <unistd.h>

namespace perdure {

class Patience {
 public:
  // Whether it is time to ask if the other lives yet: after about 10 ms, and as often again.
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
