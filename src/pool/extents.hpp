// SPDX-License-Identifier: BSD-3-Clause
//
// Extents: where the copies and checksum tables of an array go, and the pages of the catalogue.
//
// An array has one extent at a time: its copies, at equal distances, then their tables. Its
// versions may be of other sizes; one for which the extent is too small, or far too large, has
// another extent. An extent is in use as long as anything names it: an array that is open, or its
// entry in a catalogue that is kept. So each entry holds its extent (ExtentHold), all entries of
// one extent the same hold, and the last one that goes gives it back. There is no list of free
// extents on the medium that could be wrong: what is free is found when a pool is opened, as what
// no version names.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "pmem/region.hpp"
#include "pool/catalogue.hpp"

namespace perdure {

struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

// What of a file is free, after its slots. Taking and giving back cost the logarithm of the number
// of gaps, however many extents are in use.
class FreeSpace {
 public:
  // `used` may overlap and be in any order.
  FreeSpace(std::uint64_t begin, std::vector<Extent> used);
  FreeSpace(const FreeSpace&) = delete;
  FreeSpace& operator=(const FreeSpace&) = delete;

  // From the smallest gap that has room, else from the end, which may lie beyond that of the file:
  // then the caller lets the file grow, or gives the extent back.
  Extent take(std::uint64_t bytes, std::uint64_t align);
  // A multiple of `unit` bytes, as many as the largest gap has, up to `bytes`; if it has none, all
  // from the end. At multiples of the unit.
  Extent take_units(std::uint64_t bytes, std::uint64_t unit);
  void give_back(const Extent& extent);
  // Nothing from here on is in use.
  std::uint64_t end() const { return tail_; }

 private:
  using Gap = std::pair<std::uint64_t, std::uint64_t>;  // bytes, begin
  std::map<std::uint64_t, std::uint64_t>::iterator find_gap(std::uint64_t bytes,
                                                            std::uint64_t align);
  void add_gap(std::uint64_t begin, std::uint64_t end);
  Extent take_from(std::map<std::uint64_t, std::uint64_t>::iterator gap, std::uint64_t bytes,
                   std::uint64_t align);
  Extent take_from_end(std::uint64_t bytes, std::uint64_t align);
  void remove_gap(std::map<std::uint64_t, std::uint64_t>::iterator gap);

  std::uint64_t tail_;                           // nothing after it is in use
  std::map<std::uint64_t, std::uint64_t> gaps_;  // before it: begin, end; none touch
  std::set<Gap> by_size_;
};

// An extent that is in use. Between an array's openings it also keeps which of its copies the
// slots name (retained.hpp).
class ExtentHold {
 public:
  // The extent was taken from `space`, or is part of what was in use when that was made.
  ExtentHold(std::shared_ptr<FreeSpace> space, const Extent& extent);
  ~ExtentHold() { space_->give_back(extent_); }
  ExtentHold(const ExtentHold&) = delete;
  ExtentHold& operator=(const ExtentHold&) = delete;

  const Extent& extent() const { return extent_; }

  std::vector<std::uint8_t> named;  // as VersionedArray keeps it; empty: no slot names any
  std::uint64_t seen = 0;           // up to which change of the retained versions

 private:
  std::shared_ptr<FreeSpace> space_;
  Extent extent_;
};

// An entry whose offsets count from the beginning of its extent. An array of 0 bytes has an extent
// as well: what tells arrays apart is where they begin. `spare_copy`: one copy more than there are
// slots. `checksum`: what blocks or pages are summed with; nullopt: the fastest here. Errors: of
// check_name and checked_bytes.
Result<ArrayEntry> lay_out(const std::string& name, std::uint32_t part, const ArrayShape& shape,
                           const Geometry& geometry, bool spare_copy = false,
                           std::optional<DataChecksum> checksum = std::nullopt);

// What the extent's beginning is a multiple of.
std::uint64_t alignment_of(const ArrayEntry& entry, const Geometry& geometry);

// Gives a laid out entry an extent, which it holds.
void place(ArrayEntry& entry, const std::shared_ptr<FreeSpace>& space, const Geometry& geometry);

// The entry of an array that gets another size. It stays in its extent as long as that has room for
// its copies, and not over room_factor_max times as much as they need; else it has another extent,
// with some room to grow, and copies that hold nothing; so it does if it must `leave`. Errors: of
// checked_bytes.
constexpr double room_factor_max = 1.6;
Result<ArrayEntry> resized(const ArrayEntry& entry, const ArrayShape& shape, bool leave,
                           const std::shared_ptr<FreeSpace>& space, const Geometry& geometry,
                           std::optional<DataChecksum> checksum = std::nullopt);

}  // namespace perdure
