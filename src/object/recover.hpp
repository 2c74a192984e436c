// Recovery: the version that all ranks hold, agreed and made the only one, before anything is
// written. See commit.cpp for the invariants.
#pragma once

#include <cstdint>

#include "base/group.hpp"
#include "base/status.hpp"
#include "object/catalogue.hpp"
#include "object/commit.hpp"
#include "object/slots.hpp"

namespace perdure {

struct Recovered {
  Catalogue catalogue;      // of the version R that all ranks hold
  bool weak = false;        // R's slot is open again on this rank: verify all data first
  bool fell_back = false;   // some rank's newest version was damaged (PERDURE_ALLOW_OLDER)
  std::string explanation;  // of what was damaged here, if anything
};

// Collective: chooses R. Writes nothing.
//   R = minimum over ranks of the newest complete version. It must be held by all, with the same
//   incarnation, and be no older than any version that some rank knows to be complete everywhere;
//   otherwise a file is stale, swapped or damaged: Code::damaged.
Result<Recovered> choose_version(Group& group, const Slots& slots, bool allow_older);

// Collective: makes R the newest version on every rank, and its successor's slot open. All data of
// R have been verified if `recovered.weak`. Idempotent: a crash in here leads back to the same R.
Status settle_version(Device& device, Slots& slots, Group& group, const Recovered& recovered);

}  // namespace perdure
