// SPDX-License-Identifier: BSD-3-Clause
//
// Retained versions: what the slots of this rank name, as far as it decides which copies and
// extents must not be stored to, and the lineage of the versions. Memory only; the pool keeps it in
// step with the medium.
//
// Invariant: a slot whose version recovery may still choose is noted here. It is forgotten only
// when that is impossible, durably.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "pmem/region.hpp"
#include "pool/catalogue.hpp"
#include "pool/extents.hpp"
#include "pool/state_word.hpp"

namespace perdure {

class VersionedArray;

// A version that can be restored.
struct VersionInfo {
  std::uint64_t version = 0;
  std::uint64_t parent = 0;  // the version that it was made from
  std::uint64_t committed_ns = 0;
  bool abandoned = false;  // the newest version was not made from it
};

class Retained {
 public:
  explicit Retained(const Geometry& geometry);

  // `catalogue` is in the slot of its version.
  void note(const Catalogue& catalogue);
  // There is no such version any more, but its parent is known.
  void drop(std::uint64_t version, std::uint64_t parent);
  // Nothing is known of the slot.
  void forget(std::uint32_t slot);

  bool holds(std::uint64_t version) const;
  std::uint64_t parent_of(std::uint64_t version) const;  // that it holds
  // Newest first, without version 0 and what is in slot `open`.
  std::vector<VersionInfo> versions(std::uint64_t head, std::uint32_t open) const;

  // Tells the array that `entry` describes which of its copies the slots name. Slot `open` counts
  // as one that names none: it is the next version's.
  void tell(VersionedArray& array, const ArrayEntry& entry, std::uint32_t open) const;
  // Adds the extents that the slots name.
  void add_extents(std::vector<Extent>& used) const;

  std::uint32_t slot_of(std::uint64_t version) const {
    return static_cast<std::uint32_t>(version % slots_.size());
  }

 private:
  struct NamedArray {
    Extent extent;  // an array is known by where it begins
    std::uint32_t copy;
  };
  struct Slot {
    std::optional<VersionInfo> version;  // held, or deleted
    bool held = false;
    std::vector<NamedArray> arrays;
  };
  std::uint64_t block_bytes_;
  std::vector<Slot> slots_;
};

// Adds the extents of a catalogue's arrays.
void add_extents(const Catalogue& catalogue, std::uint64_t block_bytes, std::vector<Extent>& used);

}  // namespace perdure
