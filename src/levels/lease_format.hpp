// SPDX-License-Identifier: BSD-3-Clause
//
// Lease format: who uses a level, and what the lineages of a job were made from. Little-endian;
// docs/format.md is checked against this header.
//
//   LEVEL/POOL/lease-N          LeaseFormat
//   LEVEL/POOL/LINEAGE/origin   OriginFormat, then AncestorFormat for each ancestor, oldest first
#pragma once

#include <cstddef>
#include <cstdint>

#include "pmem/region_format.hpp"

namespace perdure {

constexpr std::uint64_t lease_magic = 0x3145534c44524550U;  // "PERDLSE1"
constexpr std::uint32_t lease_version = 1;
constexpr std::size_t holder_text_bytes = 64;
constexpr std::uint64_t origin_magic = 0x3149524f44524550U;  // "PERDORI1"
constexpr std::uint32_t origin_version = 1;
constexpr std::uint32_t ancestors_max = 1U << 16;

struct LeaseFormat {
  std::uint64_t magic;           // lease_magic
  std::uint32_t format_version;  // lease_version
  std::uint32_t ranks;           // of the job
  std::uint64_t job_id[2];
  char job_name[job_name_bytes];
  std::uint64_t job_created_ns;  // since 1970
  std::uint64_t lineage[2];      // as in RegionHeaderFormat
  std::uint64_t number;          // the fence number, as in the name
  std::uint64_t beats;           // grows while the holder lives
  std::uint64_t patience_ms;     // when they stand still for so long, it counts as gone
  std::uint64_t since_ns;        // since 1970, by the holder's clock; for people
  std::uint32_t held;            // 1; 0: it was given back
  std::uint32_t reserved;        // zero
  std::uint64_t pid;
  std::uint64_t start_ticks;          // since boot, as proc_pid_stat(5) says
  std::uint64_t pid_space;            // inode of the pid namespace
  char boot_id[holder_text_bytes];    // of the kernel
  char host[holder_text_bytes];       // its name; for people
  char batch_job[holder_text_bytes];  // the batch system's; for people
  std::uint64_t checksum;             // CRC-64 of all bytes before it
};
static_assert(sizeof(LeaseFormat) == 384);
static_assert(offsetof(LeaseFormat, checksum) == 376);

struct OriginFormat {
  std::uint64_t magic;           // origin_magic
  std::uint32_t format_version;  // origin_version
  std::uint32_t ancestors;
  std::uint64_t job_id[2];
  std::uint64_t lineage[2];
  std::uint64_t checksum;  // CRC-64 of all bytes before it, and of all after it
};
static_assert(sizeof(OriginFormat) == 56);

struct AncestorFormat {
  std::uint64_t lineage[2];
  std::uint64_t incarnation;  // of the version that the next lineage was made from
  std::uint64_t version;
};
static_assert(sizeof(AncestorFormat) == 32);

}  // namespace perdure
