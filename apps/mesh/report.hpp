// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>

#include "job/stepping.hpp"
#include "options.hpp"

namespace mesh {

struct Outcome {
  job::Stepped stepped;
  std::uint64_t blocks = 0;
  std::uint64_t hash = 0;
};

void print_report(const Options& options, const Outcome& outcome);

}  // namespace mesh
