// SPDX-License-Identifier: BSD-3-Clause
//
// Node file and manifest format: what the drain writes of a version. Little-endian; docs/format.md
// is checked against this header.
//
// A node file, node-NNNNN, NNNNN being the lowest rank in it:
//
//   offset 0          NodeFileFormat
//   from 1 MiB on     the images, each from a multiple of node_align_bytes on, zeros between them
//   index_offset      for each image NodeImageFormat, then CRC-64 of each of its chunks of
//                     sealed_chunk_bytes, then NodeArrayFormat and the name of each array, then
//                     NodeScalarFormat, the name and the bytes of each scalar
//
// Names and bytes of scalars are padded with zeros to a multiple of 8. The index ends the file.
//
// The payload of a sealed manifest (sealed_format.hpp): for each node file ManifestFileFormat and
// the ranks that are read from it, 4 bytes each. Every rank of the job is there once.
#pragma once

#include <cstddef>
#include <cstdint>

#include "pmem/region_format.hpp"
#include "pool/slot_format.hpp"

namespace perdure {

constexpr std::uint64_t node_file_magic = 0x31444f4e44524550U;  // "PERDNOD1"
constexpr std::uint32_t node_file_version = 1;
constexpr std::uint64_t node_align_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t node_index_bytes_max = std::uint64_t{1} << 30;

struct NodeFileFormat {
  std::uint64_t magic;           // node_file_magic
  std::uint32_t format_version;  // node_file_version
  std::uint32_t ranks;           // of the job
  std::uint64_t job_id[2];
  char job_name[job_name_bytes];
  std::uint64_t job_created_ns;  // since 1970
  std::uint64_t version;
  std::uint64_t incarnation;
  std::uint32_t images;
  std::uint32_t reserved0;  // zero
  std::uint64_t index_offset;
  std::uint64_t index_bytes;
  std::uint64_t index_checksum;
  std::uint64_t lineage[2];   // as in RegionHeaderFormat
  std::uint64_t reserved[2];  // zero
  std::uint64_t checksum;     // CRC-64 of all bytes before it
};
static_assert(sizeof(NodeFileFormat) == 192);

struct NodeImageFormat {
  std::uint32_t rank;  // in ascending order
  std::uint32_t arrays;
  std::uint32_t scalars;
  std::uint32_t reserved;  // zero
  std::uint64_t offset;    // in the file
  std::uint64_t bytes;     // without padding
};
static_assert(sizeof(NodeImageFormat) == 32);

struct NodeArrayFormat {
  std::uint32_t type;  // as in ArrayFormat
  std::uint32_t mode;
  std::uint32_t checksums;
  std::uint32_t dimensions;
  std::uint64_t shape[dimensions_max];
  std::uint64_t global_shape[dimensions_max];  // zeros if the program gave none
  std::uint64_t first[dimensions_max];         // of this rank's elements in the global array
  std::uint64_t offset;                        // of its bytes in the image
  std::uint32_t part;
  std::uint32_t boxed;       // 1: global_shape and first hold
  std::uint32_t name_bytes;  // the name follows
  std::uint32_t reserved;    // zero
};
static_assert(sizeof(NodeArrayFormat) == 232);

struct NodeScalarFormat {
  std::uint64_t bytes;       // follow the name
  std::uint32_t name_bytes;  // the name follows
  std::uint32_t type;        // perdure_type; 0: none is known
};
static_assert(sizeof(NodeScalarFormat) == 16);

struct ManifestFileFormat {
  std::uint32_t node;  // the file is node-NNNNN
  std::uint32_t ranks;
  std::uint64_t bytes;           // of the file
  std::uint64_t index_checksum;  // as in NodeFileFormat
};
static_assert(sizeof(ManifestFileFormat) == 24);

}  // namespace perdure
