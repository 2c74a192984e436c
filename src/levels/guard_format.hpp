// SPDX-License-Identifier: BSD-3-Clause
//
// Guard format: the payload of a level file of kind guard (sealed_format.hpp). Little-endian;
// docs/format.md is checked against this header.
//
//   offset 0      parity: for each round, which is a chunk of a segment, a block of each of
//                 `rows` stripes (stripes.hpp)
//   then          GuardMemberFormat, one for each member of the failure group
//   at the end    GuardFormat
#pragma once

#include <cstdint>

namespace perdure {

constexpr std::uint32_t group_size_max = 32;  // members of a failure group

struct GuardMemberFormat {
  std::uint32_t rank;
  std::uint32_t reserved;  // zero
  std::uint64_t image_bytes;
  std::uint64_t image_checksum;  // CRC-64 of the image's table of checksums
};
static_assert(sizeof(GuardMemberFormat) == 24);

struct GuardFormat {
  std::uint32_t members;
  std::uint32_t rows;
  std::uint32_t coding;    // by number (coding.hpp)
  std::uint32_t reserved;  // zero
  std::uint64_t segment_bytes;
};
static_assert(sizeof(GuardFormat) == 24);

}  // namespace perdure
