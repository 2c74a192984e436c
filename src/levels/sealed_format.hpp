// SPDX-License-Identifier: BSD-3-Clause
//
// Sealed format: the form of what is kept of a version outside of its pool. Little-endian;
// docs/format.md is checked against this header.
//
//   offset 0      state word, 8 bytes: the header's checksum when all is whole, else 0
//   offset 64     SealedHeaderFormat
//   offset 4096   payload
//   then          CRC-64 of each chunk of the payload (the last may be shorter), after padding to 8
#pragma once

#include <cstddef>
#include <cstdint>

#include "pmem/region_format.hpp"

namespace perdure {

constexpr std::uint64_t sealed_magic = 0x314c564c44524550U;  // "PERDLVL1"
constexpr std::uint32_t sealed_version = 1;
constexpr std::uint64_t sealed_header_offset = 64;
constexpr std::uint64_t sealed_payload_offset = 4096;
constexpr std::uint64_t sealed_chunk_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t chunks_of(std::uint64_t bytes) {
  return bytes / sealed_chunk_bytes + (bytes % sealed_chunk_bytes != 0 ? 1 : 0);
}
// Of a payload that is no longer than a file can be.
constexpr std::uint64_t sealed_table_offset(std::uint64_t payload_bytes) {
  return sealed_payload_offset + (payload_bytes + 7) / 8 * 8;
}
constexpr std::uint64_t sealed_bytes(std::uint64_t payload_bytes) {
  return sealed_table_offset(payload_bytes) + chunks_of(payload_bytes) * sizeof(std::uint64_t);
}

struct SealedHeaderFormat {
  std::uint64_t magic;           // sealed_magic
  std::uint32_t format_version;  // sealed_version
  std::uint32_t kind;            // SealedKind
  std::uint64_t job_id[2];
  char job_name[job_name_bytes];
  std::uint64_t job_created_ns;  // since 1970
  std::uint32_t rank;            // whose it is
  std::uint32_t ranks;
  std::uint64_t version;
  std::uint64_t incarnation;  // of the version: counts restarts of the job
  std::uint64_t payload_bytes;
  std::uint64_t lineage[2];   // as in RegionHeaderFormat
  std::uint64_t reserved[6];  // zero
  std::uint64_t checksum;     // CRC-64 of all bytes before it, and of the table of CRCs; never 0
};
static_assert(sizeof(SealedHeaderFormat) == 208);
static_assert(offsetof(SealedHeaderFormat, job_name) == 32);
static_assert(offsetof(SealedHeaderFormat, checksum) == 200);

}  // namespace perdure
