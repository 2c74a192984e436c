// SPDX-License-Identifier: BSD-3-Clause
//
// The seed of a random test: $PERDURE_TEST_SEED, or a new one for each process. It is printed when
// it is first asked for, so that a failure can be repeated. Threads: any.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace perdure {

inline std::uint64_t test_seed() {
  static const std::uint64_t seed = [] {
    const char* given = std::getenv("PERDURE_TEST_SEED");
    const std::uint64_t drawn =
        given != nullptr ? std::strtoull(given, nullptr, 0) : std::random_device{}();
    std::printf("PERDURE_TEST_SEED=%llu\n", static_cast<unsigned long long>(drawn));
    return drawn;
  }();
  return seed;
}

}  // namespace perdure
