// SPDX-License-Identifier: BSD-3-Clause
//
// Recovery: the version that all ranks hold, agreed and made the only one, before anything is
// written. The argument is at the top of recover.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "pool/catalogue.hpp"
#include "pool/judgement.hpp"
#include "pool/slots.hpp"

namespace perdure {

struct Recovered {
  Choice choice;                // R, and the versions that all ranks hold
  Catalogue catalogue;          // of R
  std::vector<SlotView> slots;  // as they were found
  std::string explanation;      // of what was damaged here, if anything
};

// Collective: chooses R. Writes nothing.
//   R = minimum over ranks of their heads. It must be held by all, with the same incarnation, and
//   no rank may have lost a version that all had completed; otherwise a file is stale, swapped or
//   damaged: Code::damaged. With `allow_older`, R is then the newest version that is whole on all.
Result<Recovered> choose_version(Group& group, const Slots& slots, bool allow_older);

// Collective: makes R the newest version on every rank, and its successor's slot open; versions
// that some rank lacks are deleted. All data of R have been verified if the choice is weak.
// Idempotent: a crash in here leads back to the same R. `when_newest` is called when this rank has
// nothing newer than R, durably, and before any rank goes on.
Status finish_recovery(Device& device, Slots& slots, Group& group, const Recovered& recovered,
                       const std::function<Status()>& when_newest);

}  // namespace perdure
