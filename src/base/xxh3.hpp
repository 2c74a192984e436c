// SPDX-License-Identifier: BSD-3-Clause
//
// XXH3 (64 bits, Y. Collet's xxHash) by the instructions of one kind of processor: at once, or of
// bytes that come in turns, with a state.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

struct alignas(64) Xxh3State {
  std::byte bytes[576];
};

struct Xxh3 {
  std::uint64_t (*of)(const void* bytes, std::size_t size_bytes, std::uint64_t seed);
  void (*begin)(Xxh3State& state, std::uint64_t seed);
  void (*add)(Xxh3State& state, const void* bytes, std::size_t size_bytes);
  std::uint64_t (*value)(const Xxh3State& state);
};

// Only on processors that have AVX2.
extern const Xxh3 xxh3_by_avx2;

}  // namespace perdure
