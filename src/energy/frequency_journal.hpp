// SPDX-License-Identifier: BSD-3-Clause
//
// Frequency journal: what the frequencies were before they were capped, and who wants them capped.
// docs/format.md has its form.
//
// Invariants
//   energy.J1  Before a value is written to a policy, the journal on the medium holds the value
//       from before the first cap and, among `ours`, the value that is about to be written.
//   energy.J2  A policy is in the journal as long as it may differ from what it was on our account.
//   energy.J3  A journal of another boot says nothing: the kernel's settings went with it.
//   energy.J4  Whoever may write the state directory may have written the journal. So no path comes
//       from it and nothing of it is repeated: names are those of policies or of known knobs, the
//       rest are bounded numbers, and frequency.hpp bounds what is written to what the machine
//       offers.
//
// Threads: under StateLock. Failure: a journal that can't be read as one is Code::damaged, or
// Code::foreign if it is no regular file of one name; it is left where it is, and nothing is capped
// as long as it is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/status.hpp"
#include "energy/owner.hpp"

namespace perdure::energy {

struct CapOwner {
  Owner owner;
  std::uint64_t cap_khz = 0;
};

// One of a policy's two limits.
struct Limit {
  std::uint64_t original_khz = 0;
  std::vector<std::uint64_t> ours_khz;  // what it may be if nobody else has changed it; one or two
};

struct PolicyRecord {
  std::string name;  // "policy" and a number
  Limit max;
  Limit min;
  std::vector<CapOwner> owners;
};

// Where a driver lets clocks above the nominal one be switched off.
enum class BoostKnob : std::uint8_t { none, cpufreq, intel_pstate };

struct Boost {
  BoostKnob knob = BoostKnob::none;
  std::uint64_t value = 0;  // what the knob shows: 0 or 1
};

struct FrequencyJournal {
  std::string boot_id;
  Boost boost;  // as it was
  std::vector<PolicyRecord> policies;
};

// An empty journal if there is none, or one of another boot.
Result<FrequencyJournal> load_journal(const Directory& directory, const std::string& boot_id);
// No policies: the file is removed.
Status store_journal(const Directory& directory, const FrequencyJournal& journal);

}  // namespace perdure::energy
