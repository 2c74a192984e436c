// SPDX-License-Identifier: BSD-3-Clause
//
// Monotonic nanoseconds for durations and wall-clock nanoseconds for time stamps.
#pragma once

#include <chrono>
#include <cstdint>

namespace perdure {

inline std::uint64_t monotonic_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::steady_clock::now().time_since_epoch())
                                        .count());
}

// Nanoseconds since 1970-01-01 UTC.
inline std::uint64_t wall_clock_ns() {
  return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                        std::chrono::system_clock::now().time_since_epoch())
                                        .count());
}

}  // namespace perdure
