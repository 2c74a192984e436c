// SPDX-License-Identifier: BSD-3-Clause
//
// Retained versions: what the slots of this rank name, as far as it decides which copies, extents
// and pages must not be stored to, and the lineage of the versions. Memory only; the pool keeps it
// in step with the medium.
//
// Which copies of an array the slots name is kept with the array, and not asked for here: an array
// that took no part in a version is named by it as by the version before. So each array is brought
// up to date when it matters, from the slots that have changed since it was.
//
// Invariant: a slot whose version recovery may still choose is noted here, and its table keeps what
// it names in use. It is forgotten only when that is impossible, durably.
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
  std::uint64_t parent_of(std::uint64_t version) const;      // that it holds
  const ArrayTable& arrays_of(std::uint64_t version) const;  // the same
  // Newest first, without version 0 and what is in slot `open`.
  std::vector<VersionInfo> versions(std::uint64_t head, std::uint32_t open) const;

  // What the slots have named of an array since it was brought up to date, if that is `copy` where
  // they name any. Slot `open` counts as one that names none: it is the next version's.
  void tell(VersionedArray& array, std::uint32_t copy, std::uint32_t open) const;
  // The same of an array that is not open.
  void tell(ExtentHold& hold, std::uint32_t copy) const;
  // Of one that is new: they name none.
  void tell_none(ExtentHold& hold) const;
  // From the slots' tables: what they name of all arrays, which have their extents.
  void tell_all() const;

  // Of the arrays of each slot.
  std::vector<const ArrayTable*> tables() const;
  std::uint64_t nodes_max() const;  // of the largest

  std::uint32_t slot_of(std::uint64_t version) const {
    return static_cast<std::uint32_t>(version % slots_.size());
  }

 private:
  struct Slot {
    std::optional<VersionInfo> version;  // held, or deleted
    bool held = false;
    std::uint64_t changed = 0;  // when
    ArrayTable arrays;
  };
  Slot& change(std::uint32_t slot);

  std::uint64_t now_ = 0;  // changes so far
  std::vector<Slot> slots_;
};

}  // namespace perdure
