// SPDX-License-Identifier: BSD-3-Clause
//
// Box note: where an array of a rank lies in one that all ranks have together, as a scalar of a
// version. Little-endian; docs/format.md is checked against this header.
#pragma once

#include <cstdint>

namespace perdure {

constexpr std::uint32_t box_note_version = 1;

struct BoxNoteFormat {
  std::uint32_t version;     // box_note_version
  std::uint32_t dimensions;  // 0: the array has no box any more
  std::uint32_t part;        // of the array, as its entry says
  std::uint32_t name_bytes;  // of its name, right after this struct
  std::uint64_t global_shape[8];
  std::uint64_t first[8];
};
static_assert(sizeof(BoxNoteFormat) == 144);

}  // namespace perdure
