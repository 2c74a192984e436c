// SPDX-License-Identifier: BSD-3-Clause
//
// $PERDURE_SLOW_TESTS=1, as in `make soak`: a test takes all its cases, and not a few of each kind.
// Threads: any.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "test_seed.hpp"

namespace perdure {

inline bool slow_tests() {
  const char* given = std::getenv("PERDURE_SLOW_TESTS");
  return given != nullptr && std::string_view(given) == "1";
}

// A sweep over numbered cases takes the `first` and every `step`th after it.
struct Cases {
  std::uint64_t first;
  std::uint64_t step;
};

// All of them, from `begin` on, in slow tests; else each `step`th, from one that is drawn.
inline Cases some_cases(std::uint64_t begin, std::uint64_t step) {
  if (slow_tests()) return {begin, 1};
  return {begin + test_seed() % step, step};
}

}  // namespace perdure
