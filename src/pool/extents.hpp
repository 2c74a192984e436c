// SPDX-License-Identifier: BSD-3-Clause
//
// Extents: where the copies and checksum tables of a new array go. Pure.
//
// An array has one extent: its copies, at equal distances, then their tables. It is given out by
// first fit between the extents that are in use, so that those of erased arrays are used again.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "pmem/region.hpp"
#include "pool/catalogue.hpp"

namespace perdure {

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// An entry whose offsets count from the beginning of its extent. An array of 0 bytes has an extent
// as well: what tells arrays apart is where they begin. `spare_copy`: one copy more than there are
// slots. Errors: of check_name and checked_bytes.
Result<ArrayEntry> lay_out(const std::string& name, std::uint32_t part, const ArrayShape& shape,
                           const Geometry& geometry, bool spare_copy = false);

// What the extent's beginning is a multiple of.
std::uint64_t alignment_of(const ArrayEntry& entry, const Geometry& geometry);

// Places a laid out entry at the lowest offset, not below `begin`, where it meets none of `used`.
void place(ArrayEntry& entry, std::vector<Extent> used, std::uint64_t begin,
           const Geometry& geometry);

}  // namespace perdure
