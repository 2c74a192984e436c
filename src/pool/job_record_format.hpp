// SPDX-License-Identifier: BSD-3-Clause
//
// Job record: the file "job" of a pool's directory. It is written last when a pool is made, so a
// directory without one holds no pool. Little-endian; docs/format.md is checked against this
// header.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pmem/region_format.hpp"

namespace perdure {

constexpr std::uint64_t job_record_magic = 0x31424f4a44524550U;  // "PERDJOB1"
constexpr std::uint32_t job_record_version = 3;

// The directory in which the pool was made, for telling it from one that was put in its place.
struct PlaceFormat {
  std::uint64_t path_checksum;  // CRC-64 of the canonical path
  std::uint64_t device;         // as fstat(2) gives them
  std::uint64_t inode;
};

struct JobRecordFormat {
  std::uint64_t magic;           // job_record_magic
  std::uint32_t format_version;  // job_record_version
  std::uint32_t ranks;
  std::uint64_t job_id[2];
  char job_name[job_name_bytes];
  std::uint64_t created_ns;  // since 1970
  PlaceFormat place;
  std::uint64_t generation;  // of its rank files, which have this one or a later one
  std::uint64_t checksum;    // CRC-64 of all bytes before it
};
static_assert(sizeof(JobRecordFormat) == 144);
static_assert(offsetof(JobRecordFormat, job_name) == 32);
static_assert(offsetof(JobRecordFormat, checksum) == 136);

}  // namespace perdure
