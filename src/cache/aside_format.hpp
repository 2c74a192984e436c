// SPDX-License-Identifier: BSD-3-Clause
//
// Aside format: the file in which the processes of a node tell each other which files they use
// aside, that is, without a part (aside_table.hpp). Little-endian; docs/format.md is checked
// against this header.
//
//   header, a page | owners, as of a part | entries, a page for each owner
//
// It is of use only while processes use it: the first one makes all of it anew.
#pragma once

#include <cstddef>
#include <cstdint>

#include "parts/part_format.hpp"

namespace perdure {

constexpr std::uint64_t aside_magic = 0x4544495341445250U;  // "PRDASIDE"
constexpr std::uint32_t aside_format_version = 1;
constexpr std::size_t aside_page_bytes = 4096;
constexpr std::uint32_t aside_entries = 64;  // of each process: files at a time

struct AsideHeaderFormat {
  std::uint64_t magic;           // aside_magic, written last
  std::uint32_t format_version;  // aside_format_version
  std::uint32_t reserved;        // zero
  std::uint64_t id;              // random: who sees the same one shares this memory
  std::uint64_t making;          // odd while a process makes a part of some file
};
static_assert(sizeof(AsideHeaderFormat) == 32);
static_assert(offsetof(AsideHeaderFormat, making) == 24);

// A file that a process uses aside; it alone changes what is not said to be others'.
struct AsideEntryFormat {
  std::uint64_t device;    // of the file, as stat(2) says
  std::uint64_t inode;     // of the file
  std::uint32_t used;      // 1: the entry is one; 0: it is free
  std::uint32_t busy;      // how many accesses aside are under way
  std::uint32_t leave;     // 1, set by others: the file has a part, or is about to have one
  std::uint32_t reserved;  // zero
  std::uint64_t pointer;   // shared file pointer of the handle whose first rank this is
  std::uint64_t unused[3];
};
static_assert(sizeof(AsideEntryFormat) == 64);
static_assert(offsetof(AsideEntryFormat, leave) == 24);
static_assert(sizeof(AsideEntryFormat) * aside_entries == aside_page_bytes);

constexpr std::size_t aside_owners_offset = aside_page_bytes;
constexpr std::size_t aside_entries_offset = aside_owners_offset + owners_max * sizeof(OwnerFormat);
constexpr std::size_t aside_file_bytes = aside_entries_offset + owners_max * aside_page_bytes;
static_assert(aside_entries_offset % aside_page_bytes == 0);

}  // namespace perdure
