// SPDX-License-Identifier: BSD-3-Clause
//
// Kept versions: those that the slots of this rank hold, what they name, and the room in which the
// next one is made.
//
// Invariants
//   pool.V1  What is known of a slot (Retained) goes with what the medium has there: a version is
//       noted when it exists, and forgotten when its slot is open, or it is deleted, durably.
//   pool.V2  If next_is_open(), the slot of the version after the newest is open, durably.
//   pool.V3  Whatever a version that is noted names is in use in the room: each array has its
//       extent, each node of a tree its page.
//
// Threads: as the pool. Failure: after one of settle(), reopen_next() and remove() the ranks may
// differ, and only recovery can tell.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "base/group.hpp"
#include "base/status.hpp"
#include "pool/catalogue_pages.hpp"
#include "pool/commit.hpp"
#include "pool/recover.hpp"
#include "pool/retained.hpp"
#include "pool/slots.hpp"

namespace perdure {

class KeptVersions {
 public:
  KeptVersions(Device& device, const Region& region);

  // [collective] Chooses the version to restore, and learns what all of them name. Writes nothing.
  Status choose(Group& group, bool allow_older);
  // What was chosen; of what is named, only until settle().
  const Recovered& chosen() const { return chosen_; }
  // Its number was another one, where another number of ranks had made it.
  void renumber_chosen(std::uint64_t version) { chosen_.catalogue.version = version; }
  // [collective] The chosen version is the newest on all ranks, and the next one's slot is open.
  Status settle(Group& group, const std::function<Status()>& when_newest);

  bool next_is_open() const { return next_is_open_; }
  // Local. The slot of `next` is open; nothing, if it is.
  Status open_next(const Catalogue& next);
  // Local. The same, of a version that is made from `head`, which is the newest from now on.
  Status reopen_next(const Catalogue& next, const Catalogue& head);
  // [collective] All ranks delete it.
  Status remove(Group& group, std::uint64_t version);
  // [collective] Makes `next` a version, and settles which pages are in use (commit.hpp).
  CommitResult commit(CommitParties parties, const Catalogue& next, const Status& data);
  // It exists, and the slot of the one after it is open, or not.
  void note(const Catalogue& newest, bool next_is_open);

  // A version as its slot has it. Code::damaged.
  Result<Catalogue> read(std::uint64_t version) const;
  std::uint64_t head_incarnation() const { return head_incarnation_; }
  const Retained& retained() const { return retained_; }
  Slots& slots() { return slots_; }
  const Slots& slots() const { return slots_; }

  // Whether the slots have room for the arrays of `next`, or there are pages for them (pool.G4).
  bool has_room_for(const Catalogue& next) const;
  // Gets the pages. May let the device grow, which nobody may use meanwhile. Code::no_space.
  Status make_room_for(const Catalogue& next);
  // Gives the entry of an array that no version names its extent.
  void place(ArrayEntry& entry);
  const std::shared_ptr<FreeSpace>& space() const { return space_; }
  CataloguePages& pages() { return *pages_; }
  // For a catalogue that is stored now.
  std::uint64_t allocated_end() const;

 private:
  std::uint64_t pages_for(const Catalogue& next) const;
  void note_found();
  void hold_extents();

  Device& device_;
  Region region_;
  Slots slots_;
  Retained retained_;
  Recovered chosen_;
  std::shared_ptr<FreeSpace> space_;
  std::unique_ptr<CataloguePages> pages_;
  std::uint64_t head_incarnation_ = 0;
  bool next_is_open_ = false;
};

}  // namespace perdure
