// SPDX-License-Identifier: BSD-3-Clause
//
// What the VELOC interface keeps in the pool of a name, of which docs/format.md has the table: the
// scalar "veloc" of each rank, and a stream of bytes in the array "stream".
//
// The stream has the regions' contents, each from a multiple of 64 bytes on, and then the table of
// them: RegionFormat, each followed by the name of its file if it is one of VELOC_Route_file.
#pragma once

#include <cstdint>

namespace perdure_veloc {

constexpr std::uint64_t format_newest = 2;
constexpr std::uint64_t labels_max = 64;
constexpr std::uint64_t region_alignment = 64;

// A version of the pool, and what the program calls it.
struct LabelFormat {
  std::uint64_t version;  // 0: the one that this scalar belongs to
  std::int64_t label;
};

struct LayoutFormat {
  std::uint64_t format;
  std::uint64_t checksums;  // the stream has them: 1 or 0
  std::uint64_t table_at;   // in the stream
  std::uint64_t table_bytes;
  std::uint64_t regions;
  std::uint64_t labels;
  LabelFormat label[labels_max];  // the last one is this version's
};
static_assert(sizeof(LayoutFormat) == 1072);

struct RegionFormat {
  std::int64_t id;
  std::uint64_t bytes;
  std::uint64_t at;          // in the stream
  std::uint64_t name_bytes;  // 0: a region of memory
};
static_assert(sizeof(RegionFormat) == 32);

}  // namespace perdure_veloc
