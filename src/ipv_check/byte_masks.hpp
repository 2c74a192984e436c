// SPDX-License-Identifier: BSD-3-Clause
//
// Shadow words: eight bytes of an object each, counted from its begin; sets of them are bit masks.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace perdure::ipv_check {

using ByteMask = std::uint8_t;

constexpr std::size_t word_bytes = 8;

constexpr std::size_t words_of(std::size_t bytes) {
  return (bytes + word_bytes - 1) / word_bytes;
}

constexpr std::uint64_t count_bytes(unsigned mask) {
  if (mask == 0xff) return word_bytes;  // most words; counting is a call without -mpopcnt
  return static_cast<std::uint64_t>(std::popcount(mask));
}

constexpr ByteMask minus(ByteMask a, ByteMask b) {
  return static_cast<ByteMask>(a & static_cast<ByteMask>(~b));
}

// Calls use(number of the word, mask) for each word that [begin, end) touches.
template <typename Use>
[[gnu::always_inline]] inline void for_words(std::size_t begin, std::size_t end, Use use) {
  if (begin % word_bytes == 0 && end - begin == word_bytes) {  // most accesses
    use(begin / word_bytes, ByteMask{0xff});
    return;
  }
  for (std::size_t at = begin; at < end;) {
    const std::size_t word = at / word_bytes;
    const std::size_t stop = std::min(end, (word + 1) * word_bytes);
    const unsigned ones = (1U << (stop - at)) - 1U;
    use(word, static_cast<ByteMask>(ones << (at % word_bytes)));
    at = stop;
  }
}

}  // namespace perdure::ipv_check
