// SPDX-License-Identifier: BSD-3-Clause
//
// The pseudo-random numbers of the NAS Parallel Benchmarks (RNR-94-007, section 2.3): the linear
// congruential sequence x(k+1) = a x(k) mod 2^46, of which a number is x / 2^46, in (0, 1).
// 2^46 divides 2^64, so that unsigned arithmetic of 64 bits is exact. Not for several threads.
#pragma once

#include <cstdint>

namespace npb {

class Random {
 public:
  static constexpr std::uint64_t default_seed = 314159265;
  static constexpr std::uint64_t default_multiplier = 1220703125;  // 5^13

  explicit Random(std::uint64_t seed = default_seed, std::uint64_t multiplier = default_multiplier)
      : state_(seed), multiplier_(multiplier) {}

  double next() {
    state_ = (state_ * multiplier_) & mask;
    return static_cast<double>(state_) * 0x1p-46;
  }

  // As if next() had been called `count` times.
  void skip(std::uint64_t count) {
    std::uint64_t power = multiplier_;  // a^(2^bit)
    for (; count > 0; count >>= 1) {
      if ((count & 1) != 0) state_ = (state_ * power) & mask;
      power = (power * power) & mask;
    }
  }

 private:
  static constexpr std::uint64_t mask = (std::uint64_t{1} << 46) - 1;
  std::uint64_t state_;
  std::uint64_t multiplier_;
};

}  // namespace npb
