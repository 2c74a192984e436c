// SPDX-License-Identifier: BSD-3-Clause
//
// XXH3 (64 bits) by AVX2, compiled by itself: only on processors that have it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

std::uint64_t xxh3_avx2(const void* bytes, std::size_t size_bytes, std::uint64_t seed);

}  // namespace perdure
