// SPDX-License-Identifier: BSD-3-Clause
//
// Node file and manifest format: what the drain writes of a version. Little-endian; docs/format.md
// is checked against this header.
//
// A node file, node-NNNNN, NNNNN being the lowest rank in it, has sealed files (sealed_format.hpp),
// each from a multiple of node_align_bytes on, with zeros between them:
//
//   a list, of kind node and the lowest rank: its payload has NodeImageFormat for each image
//   the images, each as it is beside its pool
//
// The last one ends the file.
//
// The payload of a sealed manifest has for each node file ManifestFileFormat and the ranks that are
// read from it, 4 bytes each. Every rank of the job is there once.
#pragma once

#include <cstdint>

namespace perdure {

constexpr std::uint64_t node_align_bytes = std::uint64_t{1} << 20;

struct NodeImageFormat {
  std::uint32_t rank;      // in ascending order
  std::uint32_t reserved;  // zero
  std::uint64_t offset;    // in the file
  std::uint64_t bytes;     // of the sealed image
  std::uint64_t checksum;  // its state word
};
static_assert(sizeof(NodeImageFormat) == 32);

struct ManifestFileFormat {
  std::uint32_t node;  // the file is node-NNNNN
  std::uint32_t ranks;
  std::uint64_t bytes;     // of the file
  std::uint64_t checksum;  // its state word
};
static_assert(sizeof(ManifestFileFormat) == 24);

}  // namespace perdure
