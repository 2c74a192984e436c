// SPDX-License-Identifier: BSD-3-Clause
//
// Ownership: which node keeps a byte of a cached file, and where in its part. Pure.
//
//   cyclic  block b is kept by node b mod n, as the (b / n)-th block of its part; so a file may
//           grow without moving anything
//   parts   the first n * part_blocks blocks are n equal parts, one for each node (Malinowski and
//           Czarnul, section 3.1); what the file grows beyond them is cyclic
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

#include "base/assert.hpp"

namespace perdure {

enum class LayoutKind : std::uint32_t { cyclic = 0, parts = 1 };

struct Layout {
  LayoutKind kind = LayoutKind::cyclic;
  std::uint32_t nodes = 1;
  std::uint64_t block_bytes = std::uint64_t{1} << 20;  // a power of two
  std::uint64_t part_blocks = 0;                       // parts only

  unsigned block_shift() const { return static_cast<unsigned>(std::countr_zero(block_bytes)); }
};

// A block of a node's part.
struct Place {
  std::uint32_t node;
  std::uint64_t block;
  bool operator==(const Place&) const = default;
};

// The layout `kind` of a file that has `file_bytes` bytes now.
Layout make_layout(LayoutKind kind, std::uint32_t nodes, std::uint64_t block_bytes,
                   std::uint64_t file_bytes);

Place place_of_block(const Layout& layout, std::uint64_t file_block);

// The inverse.
std::uint64_t file_block_of(const Layout& layout, const Place& place);

// Where the block stands of which `offset` is a byte.
inline Place place_of(const Layout& layout, std::uint64_t offset) {
  const std::uint64_t block = offset >> layout.block_shift();
  return layout.nodes == 1 ? Place{0, block} : place_of_block(layout, block);
}

// How many blocks the part of `node` needs for a file of `file_bytes` bytes.
std::uint64_t part_blocks_for(const Layout& layout, std::uint32_t node, std::uint64_t file_bytes);

// The longest run from `offset` on, of at most `bytes` bytes, that one node keeps in one piece, or,
// if there is one node only, all of them.
inline std::uint64_t run_on_node(const Layout& layout, std::uint64_t offset, std::uint64_t bytes) {
  if (layout.nodes == 1) return bytes;
  return std::min(bytes, layout.block_bytes - (offset & (layout.block_bytes - 1)));
}

}  // namespace perdure
