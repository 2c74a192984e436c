// SPDX-License-Identifier: BSD-3-Clause
//
// Slot format: what a version is, on the medium. Little-endian; docs/format.md is checked against
// this header.
//
//   offset 0    SlotStateFormat    64 bytes: the state word, alone in its line
//   offset 64   SlotBodyFormat     64 bytes
//   then        ArrayFormat        136 bytes for each array, followed by its name
//   or          PagePointerFormat  16 bytes: the page at the root of a tree of arrays
//   then        ScalarFormat       16 bytes for each scalar, followed by its name and its bytes
//
// Names and bytes of scalars are padded with zeros to a multiple of 8.
//
// Arrays that do not fit the slot are in a tree of pages, as deep everywhere:
//
//   leaf        ArrayFormat        and its name, 1 to 3 times; then zeros
//   branch      PagePointerFormat  32 times; zeros for a page that is not there
//
// The slots follow the region's header; of N slots, version v lives in slot v mod N.
#pragma once

#include <cstddef>
#include <cstdint>

namespace perdure {

constexpr std::size_t name_bytes_max = 255;
constexpr std::size_t dimensions_max = 8;
constexpr std::size_t scalar_bytes_max = 16384;
constexpr std::size_t catalogue_page_bytes = 512;
constexpr std::uint32_t catalogue_depth_max = 8;

struct SlotStateFormat {
  std::uint64_t state_word;   // pool/state_word.hpp
  std::uint64_t reserved[7];  // not read
};
static_assert(sizeof(SlotStateFormat) == 64);

struct SlotBodyFormat {
  std::uint64_t checksum;  // CRC-64 of the body after this field, body_bytes - 8 bytes
  std::uint64_t body_bytes;
  std::uint64_t version;
  std::uint64_t incarnation;    // grows with each restart of the job; the same on all ranks
  std::uint64_t committed_ns;   // since 1970
  std::uint64_t allocated_end;  // first byte after the extents in use
  std::uint32_t arrays;
  std::uint16_t scalars;
  std::uint16_t depth;   // of the tree of arrays; 0: they follow
  std::uint64_t parent;  // the version that it was made from, as in the state word
};
static_assert(sizeof(SlotBodyFormat) == 64);
static_assert(offsetof(SlotBodyFormat, arrays) == 48);
static_assert(offsetof(SlotBodyFormat, parent) == 56);

struct ArrayFormat {
  std::uint32_t type;        // perdure_type
  std::uint32_t mode;        // perdure_mode
  std::uint32_t checksums;   // base/data_checksum.hpp; 0: there are none
  std::uint32_t dimensions;  // 1 to 8
  std::uint64_t shape[dimensions_max];
  std::uint64_t first_offset;        // of copy 0
  std::uint64_t stride_bytes;        // from a copy to the next one
  std::uint64_t table_first_offset;  // checksum of each block of copy 0; 0 without
  std::uint64_t table_stride_bytes;  // from a table to that of the next copy
  std::uint64_t table_checksum;      // CRC-64 of the table of the copy of this version
  std::uint32_t copy;                // which copy holds this version
  std::uint32_t part;                // of the arrays of one name; 0 for a whole one
  std::uint32_t name_bytes;          // the name follows
  std::uint32_t spare_copies;        // 0 or 1: copies beyond one for each slot
};
static_assert(sizeof(ArrayFormat) == 136);
static_assert(offsetof(ArrayFormat, first_offset) == 80);
static_assert(sizeof(ArrayFormat) + (name_bytes_max + 1) <= catalogue_page_bytes);

struct PagePointerFormat {
  std::uint64_t offset;    // of a page; 0: there is none
  std::uint64_t checksum;  // CRC-64 of the page
};
static_assert(sizeof(PagePointerFormat) == 16);

struct ScalarFormat {
  std::uint64_t bytes;       // follow the name
  std::uint32_t name_bytes;  // the name follows
  std::uint32_t type;        // perdure_type; 0: none is known
};
static_assert(sizeof(ScalarFormat) == 16);

}  // namespace perdure
