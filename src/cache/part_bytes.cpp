// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_bytes.hpp"

#include <bit>

namespace perdure {

PartBytes::PartBytes(Device& device, const PartHeaderFormat& header)
    : device_(device),
      header_(header),
      layout_{LayoutKind{header.layout}, header.nodes, header.block_bytes, header.part_blocks},
      shift_(layout_.block_shift()),
      grain_shift_(shift_ - static_cast<unsigned>(std::countr_zero(grains_per_block))),
      state_(*reinterpret_cast<PartStateFormat*>(device.base() + header.state_offset)),
      blocks_(device.base() + header.block_offset) {}

std::uint64_t PartBytes::visible_in(std::uint64_t block) const {
  const std::uint64_t begin = file_offset(block);
  const std::uint64_t visible = word(state_.visible_bytes).load(std::memory_order_acquire);
  return visible <= begin ? 0 : std::min(layout_.block_bytes, visible - begin);
}

void PartBytes::flush_grains(std::uint64_t block, const Grains& grains) const {
  for (unsigned grain = 0; grain < grains_per_block; ++grain) {
    if (grains.has(grain)) flush(block, std::uint64_t{grain} << grain_shift_, grain_bytes());
  }
}

}  // namespace perdure
