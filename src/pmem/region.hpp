// SPDX-License-Identifier: BSD-3-Clause
//
// Region: a device with a header that says whose bytes these are and where things are, and the
// extents that are handed out after it.
//
// Invariants
//   - A region that check_region() accepts has a whole header: magic, format, checksum, and offsets
//     that lie inside the device and do not overlap.
//   - Which extents are in use is said by the versions that are kept (pool/retained.hpp), so an
//     extent that none of them names is free.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "pmem/device.hpp"

namespace perdure {

// Sizes that are fixed when a region is made. Tests shrink them to make crash sweeps exhaustive.
struct Geometry {
  std::uint64_t slot_bytes = 64 * 1024;
  std::uint32_t align_bytes = 4096;
  std::uint64_t block_bytes = 64 * 1024;
  std::uint32_t slots = 2;  // 2 to slots_max: versions that are kept, and one
};

struct JobId {
  std::uint64_t words[2] = {0, 0};
  bool operator==(const JobId&) const = default;
};

JobId random_job_id();
std::string job_id_text(const JobId& id);  // 32 hexadecimal digits
// Absent: that is not what job_id_text() gives.
std::optional<JobId> job_id_of(const std::string& text);

// Whose region this is.
struct RegionIdentity {
  JobId job_id;
  std::string job_name;  // at most 63 bytes
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  // Of several files of one rank the one with the highest counts: the others are from before it was
  // moved, or rebuilt from another level.
  std::uint64_t generation = 0;
  // Of the version of whose image the file was made; 0: it was made empty.
  std::uint64_t image_incarnation = 0;
  std::uint64_t image_version = 0;
  std::uint64_t image_shares = 0;  // that the image has of what is committed with the pool
  JobId lineage = {};              // of the job's histories (levels/lineage.hpp); zero: the first
};

struct Region {
  RegionIdentity identity;
  Geometry geometry;
  std::uint64_t created_ns = 0;
  std::uint64_t slot_offset = 0;
  std::uint64_t data_offset = 0;
};

// Makes room for header and slots and stores the header: durable when it returns.
Result<Region> format_region(Device& device, const RegionIdentity& identity,
                             const Geometry& geometry);

// Of a file that no pool uses: one that was copied from another node. Durable when it returns.
Status set_generation(Device& device, std::uint64_t generation);

// Reads the header; Code::damaged or Code::newer_format with what was found.
Result<Region> check_region(const Device& device);

constexpr std::uint64_t align_up(std::uint64_t value, std::uint64_t alignment) {
  return (value + alignment - 1) / alignment * alignment;
}

}  // namespace perdure
