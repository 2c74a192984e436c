// SPDX-License-Identifier: BSD-3-Clause
//
// The options of a program that goes through steps (stepping.hpp), which know no MPI.
#pragma once

#include <cstdint>
#include <string>

namespace job {

struct Stepping {
  std::uint64_t steps = 200;
  std::uint64_t every = 1;
  std::string pool;  // empty: nothing is kept
  bool json = false;
};

}  // namespace job
