// SPDX-License-Identifier: BSD-3-Clause
//
// Contents of an array that are of one version, and of no other.
#pragma once

#include <cstdint>
#include <vector>

namespace perdure {

using Words = std::vector<std::int64_t>;

inline Words words_of(std::int64_t version, std::uint64_t count) {
  Words all(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    all[i] = version * 1'000'003 + static_cast<std::int64_t>(i * i);
  }
  return all;
}

}  // namespace perdure
