// Slots: reading and writing the two records that say which version exists, and the judgement of
// what a rank's two slots mean after a crash.
//
// Reading trusts nothing. Judging is pure and is tested against every pair of slot states.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "object/catalogue.hpp"
#include "object/state_word.hpp"
#include "pmem/device.hpp"
#include "pmem/region.hpp"

namespace perdure {

// What stands in one slot.
struct SlotView {
  std::optional<StateWord> state;  // absent: the state word is damaged
  std::optional<Catalogue> body;   // absent: `problem` says why
  std::string problem;
};

// A version that a rank could give back.
struct Offer {
  std::uint64_t version = 0;
  std::uint64_t incarnation = 0;
  std::uint32_t slot = 0;
  bool weak = false;  // its slot is open again: the data must be verified before it is believed
};

// What a rank can say of its own slots.
struct Judgement {
  std::vector<Offer> offers;  // newest first; the first one is never weak unless damage was found
  std::uint64_t floor = 0;    // all ranks are known to have completed this version
  std::string damage;         // empty, or why an older version is all that is left
};

class Slots {
 public:
  Slots(Device& device, const Region& region);

  SlotView read(std::uint32_t slot) const;
  std::array<SlotView, 2> read_both() const { return {read(0), read(1)}; }

  // Stores the body of catalogue.version into its slot and flushes it; not fenced.
  Status store_body(const Catalogue& catalogue);

  // Stores the state word of the slot of `word.version` and flushes it; not fenced.
  void store_state(const StateWord& word);

  std::uint64_t body_bytes_max() const;

 private:
  std::uint64_t offset_of(std::uint32_t slot) const;

  Device& device_;
  Region region_;
  std::vector<std::byte> scratch_;  // a body is built here; allocated once
};

// Damage is Code::damaged unless `allow_older` lets an older version stand in.
Result<Judgement> judge_slots(const std::array<SlotView, 2>& slots, bool allow_older);

}  // namespace perdure
