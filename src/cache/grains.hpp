// SPDX-License-Identifier: BSD-3-Clause
//
// Grains: a set of the 128 grains of a block. A value; nothing fails.
#pragma once

#include <cstdint>

#include "parts/part_format.hpp"

namespace perdure {

struct Grains {
  std::uint64_t bits[2];

  static Grains only(unsigned grain) {
    Grains grains{};
    grains.bits[grain / 64] = std::uint64_t{1} << (grain % 64);
    return grains;
  }
  // Both are among them.
  static Grains from_to(unsigned first, unsigned last) {
    Grains grains{};
    for (unsigned half = 0; half < 2; ++half) {
      const unsigned low = half * 64;
      if (last < low || first >= low + 64) continue;
      const unsigned from = first <= low ? 0 : first - low;
      const unsigned to = last >= low + 63 ? 63 : last - low;
      grains.bits[half] = (~std::uint64_t{0} >> (63 - to)) & (~std::uint64_t{0} << from);
    }
    return grains;
  }

  bool none() const { return (bits[0] | bits[1]) == 0; }
  bool has(unsigned grain) const { return ((bits[grain / 64] >> (grain % 64)) & 1) != 0; }
  void remove(unsigned grain) { bits[grain / 64] &= ~(std::uint64_t{1} << (grain % 64)); }

  Grains operator|(const Grains& other) const {
    return {{bits[0] | other.bits[0], bits[1] | other.bits[1]}};
  }
  Grains operator&(const Grains& other) const {
    return {{bits[0] & other.bits[0], bits[1] & other.bits[1]}};
  }
  Grains operator~() const { return {{~bits[0], ~bits[1]}}; }
};

}  // namespace perdure
