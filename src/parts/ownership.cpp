// SPDX-License-Identifier: BSD-3-Clause
#include "parts/ownership.hpp"

namespace perdure {

Layout make_layout(LayoutKind kind, std::uint32_t nodes, std::uint64_t block_bytes,
                   std::uint64_t file_bytes) {
  PERDURE_ASSERT(nodes > 0 && std::has_single_bit(block_bytes));
  Layout layout{kind, nodes, block_bytes, 0};
  if (kind == LayoutKind::parts) {
    const std::uint64_t blocks = (file_bytes + block_bytes - 1) / block_bytes;
    layout.part_blocks = (blocks + nodes - 1) / nodes;
  }
  return layout;
}

Place place_of_block(const Layout& layout, std::uint64_t file_block) {
  const std::uint64_t in_parts = layout.part_blocks * layout.nodes;
  if (file_block < in_parts) {
    return {static_cast<std::uint32_t>(file_block / layout.part_blocks),
            file_block % layout.part_blocks};
  }
  const std::uint64_t beyond = file_block - in_parts;
  return {static_cast<std::uint32_t>(beyond % layout.nodes),
          layout.part_blocks + beyond / layout.nodes};
}

std::uint64_t file_block_of(const Layout& layout, const Place& place) {
  if (place.block < layout.part_blocks) return place.node * layout.part_blocks + place.block;
  return layout.part_blocks * layout.nodes + (place.block - layout.part_blocks) * layout.nodes +
         place.node;
}

std::uint64_t part_blocks_for(const Layout& layout, std::uint32_t node, std::uint64_t file_bytes) {
  const std::uint64_t blocks = (file_bytes + layout.block_bytes - 1) / layout.block_bytes;
  const std::uint64_t in_parts = layout.part_blocks * layout.nodes;
  if (blocks > in_parts) {
    const std::uint64_t beyond = blocks - in_parts;
    return layout.part_blocks + (beyond + layout.nodes - 1 - node) / layout.nodes;
  }
  const std::uint64_t before = node * layout.part_blocks;
  return blocks <= before ? 0 : std::min(layout.part_blocks, blocks - before);
}

}  // namespace perdure
