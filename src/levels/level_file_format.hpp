// SPDX-License-Identifier: BSD-3-Clause
//
// Level file format: what a rank keeps of one version beside its pool. Little-endian;
// docs/format.md is checked against this header.
//
//   offset 0      state word, 8 bytes: the header's checksum when the file is whole, else 0
//   offset 64     LevelFileHeaderFormat
//   offset 4096   payload
//   then          CRC-64 of each chunk of the payload (the last may be shorter), after padding to 8
//
// Names: image-NNNNN.S and guard-NNNNN.S, of rank NNNNN, S from 0.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pmem/region_format.hpp"

namespace perdure {

constexpr std::uint64_t level_file_magic = 0x314c564c44524550U;  // "PERDLVL1"
constexpr std::uint32_t level_file_version = 1;
constexpr std::uint64_t level_header_offset = 64;
constexpr std::uint64_t level_payload_offset = 4096;
constexpr std::uint64_t level_chunk_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t chunks_of(std::uint64_t bytes) {
  return bytes / level_chunk_bytes + (bytes % level_chunk_bytes != 0 ? 1 : 0);
}

struct LevelFileHeaderFormat {
  std::uint64_t magic;           // level_file_magic
  std::uint32_t format_version;  // level_file_version
  std::uint32_t kind;            // LevelFileKind
  std::uint64_t job_id[2];
  char job_name[job_name_bytes];
  std::uint64_t job_created_ns;  // since 1970
  std::uint32_t rank;            // whose file it is
  std::uint32_t ranks;
  std::uint64_t version;
  std::uint64_t incarnation;  // of the version: counts restarts of the job
  std::uint64_t payload_bytes;
  std::uint64_t lineage[2];   // as in RegionHeaderFormat
  std::uint64_t reserved[6];  // zero
  std::uint64_t checksum;     // CRC-64 of all bytes before it, and of the table of CRCs; never 0
};
static_assert(sizeof(LevelFileHeaderFormat) == 208);
static_assert(offsetof(LevelFileHeaderFormat, job_name) == 32);
static_assert(offsetof(LevelFileHeaderFormat, checksum) == 200);

}  // namespace perdure
