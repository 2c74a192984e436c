// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "options.hpp"

namespace tasks {

struct Outcome {
  std::uint64_t ways = 0;      // of all finished tasks together
  std::uint64_t tasks = 0;     // finished, by all jobs so far
  std::uint64_t before = 0;    // of these, by jobs before this one
  std::uint64_t repeated = 0;  // finished more than once
  double loop_s = 0;
};

void print_report(const Options& options, const Outcome& outcome);

}  // namespace tasks
