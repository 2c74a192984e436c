// SPDX-License-Identifier: BSD-3-Clause
//
// Slots: reading and writing the records that say which versions exist.
//
// Reading trusts nothing. What the slots of a rank mean after a crash is said by judgement.hpp.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pmem/region.hpp"
#include "pool/catalogue.hpp"
#include "pool/catalogue_pages.hpp"
#include "pool/state_word.hpp"

namespace perdure {

// What is in one slot.
struct SlotView {
  std::optional<StateWord> state;  // absent: the state word is damaged
  std::optional<Catalogue> body;   // absent: `problem` says why
  std::string problem;
};

class Slots {
 public:
  Slots(Device& device, const Region& region);

  std::uint32_t count() const { return region_.geometry.slots; }
  std::uint32_t slot_of(std::uint64_t version) const {
    return static_cast<std::uint32_t>(version % count());
  }
  SlotView read(std::uint32_t slot) const;
  // A body that shares bytes with that of a newer version is absent.
  std::vector<SlotView> read_all() const;

  // Whether the arrays of a catalogue have room in the slot; else they are in a tree of pages.
  bool has_room_for_arrays(const Catalogue& catalogue) const {
    return body_bytes(catalogue) <= body_bytes_max();
  }
  // Stores the body of catalogue.version into its slot, and before that its arrays into pages if
  // the slot has no room for them, and flushes it; not fenced. `pages`: null where there are none.
  Status store_body(const Catalogue& catalogue, CataloguePages* pages = nullptr);

  // Stores the state word of the slot of `word.version` and flushes it; not fenced.
  void store_state(const StateWord& word);

  std::uint64_t body_bytes_max() const;
  // Of the medium, for people.
  std::string medium() const { return device_.describe().name; }

 private:
  std::uint64_t offset_of(std::uint32_t slot) const {
    return region_.slot_offset + slot * region_.geometry.slot_bytes;
  }
  BodyBounds bounds() const;
  SlotView read_with(std::uint32_t slot, TreeSource& trees) const;
  void drop_overlapping(std::vector<SlotView>& views) const;

  Device& device_;
  Region region_;
  std::vector<std::byte> scratch_;  // a body is built here; allocated once
};

}  // namespace perdure
