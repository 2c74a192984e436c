// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "options.hpp"

namespace mesh {

struct Outcome {
  std::uint64_t blocks = 0;
  std::uint64_t hash = 0;
  std::uint64_t first_step = 0;
  unsigned old_ranks = 0;  // that made the pool, if others than these; else 0
  double loop_s = 0;
};

void print_report(const Options& options, const Outcome& outcome);

}  // namespace mesh
