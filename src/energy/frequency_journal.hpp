// Frequency journal: what the frequencies were before they were capped, and who wants them capped.
// docs/format.md has its form.
//
// Invariants
//   J1  Before a value is written to a policy, the journal on the medium holds the value from
//       before the first cap and, among `ours`, the value that is about to be written.
//   J2  A policy is in the journal as long as it may differ from what it was on our account.
//   J3  A journal of another boot says nothing: the kernel's settings went with it.
//
// Threads: under StateLock. Failure: a journal that can't be read as one is Code::damaged, is left
// where it is, and nothing is capped as long as it is there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  std::vector<std::uint64_t> ours_khz;  // what it may be if nobody else has changed it
};

struct PolicyRecord {
  std::string name;
  Limit max;
  Limit min;
  std::vector<CapOwner> owners;
};

struct FrequencyJournal {
  std::string boot_id;
  std::string boost_path;  // "" if the machine has none
  std::string boost;       // as it was
  std::vector<PolicyRecord> policies;
};

// An empty journal if there is none, or one of another boot.
Result<FrequencyJournal> load_journal(const std::string& directory, const std::string& boot_id);
// No policies: the file is removed.
Status store_journal(const std::string& directory, const FrequencyJournal& journal);

}  // namespace perdure::energy
