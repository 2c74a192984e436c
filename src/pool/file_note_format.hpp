// SPDX-License-Identifier: BSD-3-Clause
//
// File note: what a version says of a file of the program's own (noted_files.hpp). It is a scalar,
// and, for versions that lack it, a file beside the rank's. Little-endian; docs/format.md is
// checked against this header.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

constexpr std::uint32_t file_note_version = 1;
constexpr std::uint64_t file_tail_bytes = 4096;
constexpr std::size_t file_path_bytes_max = 4095;

struct FileNoteFormat {
  std::uint32_t version;      // file_note_version
  std::uint32_t path_bytes;   // of the path as the program gave it, right after this struct
  std::uint32_t place_bytes;  // of the directory that it was in, after the path
  std::uint32_t reserved;     // zero
  std::uint64_t bytes;        // that the file has
  std::uint64_t checksum;     // CRC-64 of the last of them, at most file_tail_bytes
};
static_assert(sizeof(FileNoteFormat) == 32);

// In front of a note that is a file.
struct FirstNoteFormat {
  std::uint64_t checksum;   // CRC-64 of all that follows
  std::uint64_t job_id[2];  // of the pool
};
static_assert(sizeof(FirstNoteFormat) == 24);

}  // namespace perdure
