// SPDX-License-Identifier: BSD-3-Clause
//
// mixed: a bijection of 64-bit words that looks random; the finaliser of SplitMix64 (Steele et
// al.).
#pragma once

#include <cstdint>

namespace graphs {

inline std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9U;
  x = (x ^ x >> 27) * 0x94d049bb133111ebU;
  return x ^ x >> 31;
}

}  // namespace graphs
