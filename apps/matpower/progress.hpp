// SPDX-License-Identifier: BSD-3-Clause
//
// Progress: a bar on the terminal of rank 0, for work that takes longer than two seconds.
#pragma once

#include <cstdint>

#include "job/stopwatch.hpp"

namespace matpower {

class Progress {
 public:
  // Shows nothing unless `speaks` and stderr is a terminal.
  Progress(std::uint64_t steps, bool speaks);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void step();

 private:
  job::Stopwatch watch_;
  std::uint64_t steps_, done_ = 0;
  bool on_, shown_ = false;
};

}  // namespace matpower
