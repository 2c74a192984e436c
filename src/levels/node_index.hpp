// SPDX-License-Identifier: BSD-3-Clause
//
// Node index: what the end of a node file says of the images in it. Pure.
//
// What is parsed is not trusted: every number, name and count is checked before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "levels/node_file.hpp"
#include "levels/sealed_format.hpp"

namespace perdure {

std::vector<std::byte> build_node_index(std::span<const NodeImage> images);

// `ranks`: of the job; the images lie in [node_align_bytes, index_offset). Code::damaged.
Result<std::vector<NodeImage>> parse_node_index(std::span<const std::byte> index,
                                                std::uint32_t images, std::uint32_t ranks,
                                                std::uint64_t index_offset);

}  // namespace perdure
