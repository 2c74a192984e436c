// SPDX-License-Identifier: BSD-3-Clause
#define XXH_INLINE_ALL
#include "base/xxh3.hpp"

#include <xxhash.h>

namespace perdure {

std::uint64_t xxh3_avx2(const void* bytes, std::size_t size_bytes, std::uint64_t seed) {
  return XXH3_64bits_withSeed(bytes, size_bytes, seed);
}

}  // namespace perdure
