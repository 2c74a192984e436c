// SPDX-License-Identifier: BSD-3-Clause
//
// $PERDURE_SLOW_TESTS=1, as in `make soak`: a test takes all its cases, and not a few of each kind.
// Threads: any.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <random>
#include <string_view>
#include <vector>

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

// Cases `first` to `last`: all of them in slow tests; else one that is drawn from each of `parts`,
// and from the last part the last.
inline std::vector<std::uint64_t> one_of_each_part(std::uint64_t first, std::uint64_t last,
                                                   std::uint64_t parts) {
  const std::uint64_t count = last + 1 - first;
  if (slow_tests() || parts > count) parts = count;
  std::mt19937_64 random(test_seed());
  std::vector<std::uint64_t> cases;
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t begin = first + part * count / parts;
    const std::uint64_t end = first + (part + 1) * count / parts;
    cases.push_back(begin + random() % (end - begin));
  }
  cases.back() = last;
  return cases;
}

}  // namespace perdure
