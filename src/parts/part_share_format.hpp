// SPDX-License-Identifier: BSD-3-Clause
//
// Part share format: what a version's image says of the blocks of a cached file that follow in it.
// Little-endian; docs/format.md is checked against this header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

constexpr std::uint64_t part_share_magic = 0x3152485354525050U;  // "PPRTSHR1"

struct PartShareFormat {
  std::uint64_t magic;        // part_share_magic
  std::uint64_t instance[2];  // of the file's parts: the same in all shares of a version
  std::uint64_t file_bytes;   // the size of the file, the same in all shares
  std::uint64_t block_bytes;  // a power of two
  std::uint64_t part_blocks;  // of layout parts
  std::uint32_t layout;       // LayoutKind
  std::uint32_t nodes;
  std::uint32_t node;      // whose part the blocks are of: block `share`, `share` + `shares`, …
  std::uint32_t share;     // below `shares`
  std::uint32_t shares;    // among which the part's blocks are dealt in turn
  std::uint32_t reserved;  // zero
};
static_assert(sizeof(PartShareFormat) == 72);

}  // namespace perdure
