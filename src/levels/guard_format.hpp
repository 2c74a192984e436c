// Guard format: what a rank keeps of other ranks' images. Little-endian; docs/format.md is checked
// against this header.
//
//   the blocks of parity, losses of them, segment_bytes each: block j of member i is row j of
//   stripe i - j (mod members) (redundancy.hpp)
//   GuardHeadFormat, at the end
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

constexpr std::uint64_t guard_magic = 0x3144554744524550U;  // "PERDGUD1"
constexpr std::uint32_t group_size_max = 32;

struct GuardHeadFormat {
  std::uint64_t magic;          // guard_magic
  std::uint32_t members;        // how many ranks the failure group has
  std::uint32_t losses;         // how many of them may be lost
  std::uint64_t segment_bytes;  // of each block
  std::uint32_t ranks[group_size_max];
  std::uint64_t image_bytes[group_size_max];
  std::uint64_t image_checksums[group_size_max];  // CRC-64 of the table of the image's chunks
};
static_assert(sizeof(GuardHeadFormat) == 664);

}  // namespace perdure
