// SPDX-License-Identifier: BSD-3-Clause
//
// XXH3 by the instructions that the including file is compiled for; nothing of it may be shared
// with a file that is compiled for others.
#pragma once

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/xxh3.hpp"

namespace perdure {
namespace {

static_assert(sizeof(Xxh3State) == sizeof(XXH3_state_t));
static_assert(alignof(Xxh3State) == alignof(XXH3_state_t));

constexpr Xxh3 xxh3_here = {
    [](const void* bytes, std::size_t size_bytes, std::uint64_t seed) {
      return XXH3_64bits_withSeed(bytes, size_bytes, seed);
    },
    [](Xxh3State& state, std::uint64_t seed) {
      auto* const begun = reinterpret_cast<XXH3_state_t*>(&state);
      XXH3_INITSTATE(begun);
      XXH3_64bits_reset_withSeed(begun, seed);
    },
    [](Xxh3State& state, const void* bytes, std::size_t size_bytes) {
      XXH3_64bits_update(reinterpret_cast<XXH3_state_t*>(&state), bytes, size_bytes);
    },
    [](const Xxh3State& state) {
      return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(&state));
    },
};

}  // namespace
}  // namespace perdure
