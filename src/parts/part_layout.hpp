// SPDX-License-Identifier: BSD-3-Clause
//
// Part layout: where things are in the file of a cache part, and what its header says. Pure.
//
// Failure: check_part_header() says what in a header cannot be; nothing of it was used by then.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "parts/file_stamp.hpp"
#include "parts/ownership.hpp"
#include "parts/part_format.hpp"
#include "pmem/device.hpp"

namespace perdure {

struct PartIdentity {
  std::string path;  // of the cached file
  std::uint64_t file_device = 0;
  std::uint64_t file_inode = 0;
  FileStamp file_stamp;  // when the part is made
  std::uint32_t node = 0;
  Layout layout;
  std::uint64_t instance[2] = {0, 0};
  std::uint64_t boot[2] = {0, 0};
  std::uint64_t pool_job[2] = {0, 0};  // of the pool with which the file is committed
  std::string pool;                    // its directory
  std::uint64_t pool_version = 0;      // PartHeaderFormat
  std::uint64_t pool_incarnation = 0;
  std::uint64_t next_incarnation = 0;
};

struct PartGeometry {
  std::uint64_t blocks = 0;                    // that the part has room for
  std::uint64_t journal_entries = owners_max;  // at least one for each process
};

// Bytes of a part's file of this geometry, holes included.
std::uint64_t part_file_bytes(const Layout& layout, const PartGeometry& geometry);

// Code::invalid_argument for a path that is too long.
Result<PartHeaderFormat> make_part_header(const PartIdentity& identity,
                                          const PartGeometry& geometry);

// Of a device that begins with `header`. Code::damaged or newer_format.
Result<PartHeaderFormat> read_part_header(const Device& device);

}  // namespace perdure
