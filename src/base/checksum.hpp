// SPDX-License-Identifier: BSD-3-Clause
//
// CRC-64 (ECMA-182, reflected): the one checksum of Perdure, for metadata and data blocks.
//
// Computed by Intel's ISA-L, which picks the best instructions of the processor, or from a table
// where there is none (isal.hpp), ten to thirty times slower. It finds every error of up to 64
// contiguous bits, and any other with probability 1 - 2^-64.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace perdure {

// The CRC of `size_bytes` bytes at `bytes`, continuing from `seed` (0 for a fresh one).
std::uint64_t crc64(const void* bytes, std::size_t size_bytes, std::uint64_t seed = 0);

// Its 16 hexadecimal digits, for names that a checksum makes.
std::string digits_of(std::uint64_t checksum);

// The same without ISA-L.
std::uint64_t crc64_by_table(const void* bytes, std::size_t size_bytes, std::uint64_t seed = 0);

}  // namespace perdure
