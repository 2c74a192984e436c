// SPDX-License-Identifier: BSD-3-Clause
//
// Block checksum: of a block of an array's copy, by whichever kind the array has.
//
// A kind of pages has a checksum for each page, a sixteenth of a block (4 KiB in all pools that
// perdure_open() makes): the block's one is that of its pages' checksums in turn, 8 bytes each,
// every one seeded with what came before it. So log mode, which knows the pages that changed, reads
// no others. Either way every bit of the block is in it.
//
// Threads: pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/data_checksum.hpp"

namespace perdure {

constexpr std::uint64_t pages_per_block = 16;

// Whether a block of so many bytes has whole pages.
constexpr bool has_pages(std::uint64_t block_bytes) {
  return block_bytes % pages_per_block == 0;
}

// Of a block, by the checksums of its pages; `kind` is one of pages.
std::uint64_t sum_of_pages(DataChecksum kind, std::span<const std::uint64_t> of_pages);

// `count` bytes of a block, of `block_bytes` unless it is the last one. `of_pages` (may be null)
// receives the checksum of each page, if the kind has any.
std::uint64_t block_checksum(DataChecksum kind, std::uint64_t block_bytes, const std::byte* bytes,
                             std::uint64_t count, std::uint64_t* of_pages = nullptr);

}  // namespace perdure
