// SPDX-License-Identifier: BSD-3-Clause
//
// Lease format: who uses a level, and what the lineages of a job were made from, as payloads of
// sealed files. Little-endian; docs/format.md is checked against this header.
//
//   LEVEL/POOL/lease-N          LeaseFormat
//   LEVEL/POOL/LINEAGE/origin   AncestorFormat for each ancestor, oldest first
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

constexpr std::size_t holder_text_bytes = 64;
constexpr std::uint32_t ancestors_max = 1U << 16;

struct LeaseFormat {
  std::uint64_t number;       // the fence number, as in the name
  std::uint64_t beats;        // grows while the holder lives
  std::uint64_t patience_ms;  // when they stand still for so long, it counts as gone
  std::uint64_t since_ns;     // since 1970, by the holder's clock; for people
  std::uint32_t held;         // 1; 0: it was given back
  std::uint32_t reserved;     // zero
  std::uint64_t pid;
  std::uint64_t start_ticks;          // since boot, as proc_pid_stat(5) says
  std::uint64_t pid_space;            // inode of the pid namespace
  char boot_id[holder_text_bytes];    // of the kernel
  char host[holder_text_bytes];       // its name; for people
  char batch_job[holder_text_bytes];  // the batch system's; for people
};
static_assert(sizeof(LeaseFormat) == 256);

struct AncestorFormat {
  std::uint64_t lineage[2];
  std::uint64_t incarnation;  // of the version that the next lineage was made from
  std::uint64_t version;
};
static_assert(sizeof(AncestorFormat) == 32);

}  // namespace perdure
