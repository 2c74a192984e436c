// SPDX-License-Identifier: BSD-3-Clause
//
// What PERDURE_KILL="rank=R,iteration=N,point=P" asks of this rank: perdure honours it in its own
// commits, and so do checkpoints on a disk, at the points copy, data and state.
#pragma once

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace job {

class RehearsedKill {
 public:
  explicit RehearsedKill(int rank) {
    const char* text = std::getenv("PERDURE_KILL");
    int victim = -1;
    unsigned long long iteration = 0;
    char point[16] = "";
    if (text != nullptr &&
        std::sscanf(text, "rank=%d,iteration=%llu,point=%15s", &victim, &iteration, point) == 3 &&
        victim == rank) {
      iteration_ = iteration;
      point_ = point;
    }
  }
  void die_if_due(const char* point, std::uint64_t iteration) const {
    if (iteration >= iteration_ && point_ == point) ::raise(SIGKILL);
  }

 private:
  std::uint64_t iteration_ = UINT64_MAX;
  std::string point_;
};

}  // namespace job
