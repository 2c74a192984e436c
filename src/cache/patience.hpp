// Waits for another process: soon it may be done, or it reads from a slow file system.
#pragma once

#include <sched.h>
#include <unistd.h>

namespace perdure {

class Patience {
 public:
  void wait() {
    if (++waits_ < 64) {
      ::sched_yield();
    } else {
      ::usleep(100);
    }
  }

 private:
  unsigned waits_ = 0;
};

}  // namespace perdure
