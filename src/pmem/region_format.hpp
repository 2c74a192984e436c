// SPDX-License-Identifier: BSD-3-Clause
//
// Region format: the first bytes of a rank's file. Little-endian; docs/format.md is checked
// against this header.
//
// Written once, when the region is made, and never again; everything that changes is in the
// slots (pool/slot_format.hpp) and in the extents after them.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

namespace perdure {

static_assert(std::endian::native == std::endian::little, "pools are little-endian");

constexpr std::uint64_t region_magic = 0x0045525544524550U;  // "PERDURE\0"
constexpr std::uint32_t region_format_version = 3;
constexpr std::size_t job_name_bytes = 64;
constexpr std::uint32_t slots_max = 64;
constexpr std::uint64_t slot_bytes_max = std::uint64_t{1} << 20;
constexpr std::uint32_t ranks_max = std::uint32_t{1} << 24;  // of a job

struct RegionHeaderFormat {
  std::uint64_t magic;           // region_magic
  std::uint32_t format_version;  // region_format_version
  std::uint32_t rank;
  std::uint32_t ranks;
  std::uint32_t align_bytes;  // extents begin at multiples of it
  std::uint64_t job_id[2];    // random, the same in all files of a pool
  char job_name[job_name_bytes];
  std::uint64_t created_ns;         // since 1970
  std::uint64_t slot_offset;        // of slot 0; the others follow it
  std::uint64_t slot_bytes;         // of one slot
  std::uint64_t data_offset;        // of the first extent
  std::uint64_t block_bytes;        // unit of data checksums and of dirty tracking
  std::uint64_t slots;              // how many
  std::uint64_t generation;         // grows whenever the file is made anew: moved, or rebuilt
  std::uint64_t image_incarnation;  // of the version of whose image the file was made
  std::uint64_t image_version;      // its number; 0: the file was made empty
  std::uint64_t image_shares;       // that it has of what is committed with the pool
  std::uint64_t lineage[2];         // which of the job's histories; zero: the first
  std::uint64_t reserved[4];        // zero
  std::uint64_t checksum;           // CRC-64 of all bytes before it
};
static_assert(sizeof(RegionHeaderFormat) == 240);
static_assert(offsetof(RegionHeaderFormat, job_id) == 24);
static_assert(offsetof(RegionHeaderFormat, job_name) == 40);
static_assert(offsetof(RegionHeaderFormat, slot_offset) == 112);
static_assert(offsetof(RegionHeaderFormat, checksum) == 232);

}  // namespace perdure
