// Retained versions: what the slots of this rank name, as far as it decides which copies and
// extents must not be stored to. Memory only; the pool keeps it in step with the medium.
//
// Invariant: a slot whose version recovery may still choose is noted here. It is forgotten only
// when that is impossible, durably.
#pragma once

#include <cstdint>
#include <vector>

#include "object/catalogue.hpp"
#include "object/extents.hpp"
#include "pmem/region.hpp"

namespace perdure {

class VersionedArray;

class Retained {
 public:
  explicit Retained(const Geometry& geometry);

  // `catalogue` stands in the slot of its version.
  void note(const Catalogue& catalogue);
  void forget(std::uint32_t slot);

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
  std::uint64_t block_bytes_;
  std::vector<std::vector<NamedArray>> slots_;
};

// Adds the extents of a catalogue's arrays.
void add_extents(const Catalogue& catalogue, std::uint64_t block_bytes, std::vector<Extent>& used);

}  // namespace perdure
