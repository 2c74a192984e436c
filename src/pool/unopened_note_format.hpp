// SPDX-License-Identifier: BSD-3-Clause
//
// Note of unopened arrays: which arrays a version carries on that nobody had open, as a scalar of
// the version. Little-endian; docs/format.md is checked against this header.
#pragma once

#include <cstdint>

namespace perdure {

constexpr std::uint32_t unopened_note_version = 1;
constexpr std::uint32_t unopened_note_bytes_max = 4096;  // of the scalar

struct UnopenedNoteFormat {
  std::uint32_t version;  // unopened_note_version
  std::uint32_t count;    // of all of them; as many as fit follow
};
static_assert(sizeof(UnopenedNoteFormat) == 8);

// Its name follows.
struct UnopenedArrayFormat {
  std::uint32_t part;        // of the array, as its entry says
  std::uint32_t name_bytes;  // of its name, right after this struct
};
static_assert(sizeof(UnopenedArrayFormat) == 8);

}  // namespace perdure
