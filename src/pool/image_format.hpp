// SPDX-License-Identifier: BSD-3-Clause
//
// Image format: the bytes of one rank's version outside of its pool. Little-endian; docs/format.md
// is checked against this header.
//
//   ImageHeadFormat
//   slot body          slot_format.hpp
//   for each companion of the pool: ImageShareFormat, its name, its head
//   for each array     the copy that the body names, then its table of checksums if it has one
//   for each companion the bytes of this rank's share of it
//
// Each of these is padded with zeros to a multiple of image_align_bytes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pool/slot_format.hpp"

namespace perdure {

constexpr std::uint64_t image_magic = 0x32474d4944524550U;  // "PERDIMG2"
constexpr std::uint64_t image_align_bytes = 64;

struct ImageHeadFormat {
  std::uint64_t magic;       // image_magic
  std::uint64_t body_bytes;  // without padding
  std::uint64_t slot_bytes;  // of the pool's file, as in its header
  std::uint64_t block_bytes;
  std::uint32_t align_bytes;
  std::uint32_t slots;
  std::uint64_t shares;       // how many ImageShareFormat
  std::uint64_t reserved[2];  // zero
};
static_assert(sizeof(ImageHeadFormat) == 64);

// What is committed with the pool: companion.hpp.
struct ImageShareFormat {
  std::uint64_t name_bytes;
  std::uint64_t head_bytes;
  std::uint64_t bytes;  // of this rank's share
};
static_assert(sizeof(ImageShareFormat) == 24);
constexpr std::uint64_t image_shares_max = 4096;

}  // namespace perdure
