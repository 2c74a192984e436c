// SPDX-License-Identifier: BSD-3-Clause
//
// Frequency control: caps the clock of all processors of a node for a while, and gives it back.
//
// Each policy's scaling_max_freq is lowered, and scaling_min_freq before it where it is higher;
// what every driver offers (intel_pstate, amd-pstate and acpi-cpufreq alike). Several owners may
// hold caps at a time: the least one counts, and the last who leaves restores.
//
// Invariants
//   energy.F1  Nothing is written before the journal holds what was there (frequency_journal.hpp).
//   energy.F2  A limit is written only where it is what we left there, or what it was before the
//       first cap: nobody's later change is undone. A value that the driver rounded is known by
//       having been read back, or, if we died before, by being within a step of what we were about
//       to write.
//   energy.F3  min is lowered before max, and raised after it, so that min <= max at every moment.
//   energy.F4  Owners that died are dropped by whoever comes next.
//   energy.F5  A cap never raises a limit.
//   energy.F6  Whatever the journal says, nothing is written but scaling_min_freq and
//       scaling_max_freq of policies, values from cpuinfo_min_freq to cpuinfo_max_freq. So who may
//       write the journal makes root do no more than what the two files let himself do.
//
// Threads: any; processes and threads exclude each other by the lock of the state directory.
// Failure: never one of the caller's work. What was not applied is in the report, with the reason
// and the remedy.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "energy/frequency_journal.hpp"
#include "energy/owner.hpp"
#include "energy/sysfs.hpp"

namespace perdure::energy {

struct FrequencyPolicy {
  std::string name;  // "policy0"
  std::string driver;
  std::string governor;
  std::vector<std::string> governors;
  std::optional<std::uint64_t> min_khz;  // scaling_min_freq
  std::optional<std::uint64_t> max_khz;
  std::optional<std::uint64_t> current_khz;
  std::optional<std::uint64_t> least_khz;  // cpuinfo_min_freq
  std::optional<std::uint64_t> most_khz;
  std::vector<std::uint64_t> steps_khz;  // as the driver lists them; often none
  bool settable = false;                 // scaling_max_freq may be written, as far as its mode says
};

std::vector<FrequencyPolicy> frequency_policies(Sysfs& sysfs);

struct PolicyReport {
  std::string policy;
  std::uint64_t requested_khz = 0;
  std::optional<std::uint64_t> applied_khz;    // read back
  std::optional<std::uint64_t> effective_khz;  // by measure_effect()
  std::string reason;                          // why it is not as requested; "" if it is
};

struct FrequencyReport {
  std::vector<PolicyReport> policies;
  std::string reason;  // why nothing was done at all; "" if something was
  std::string boost;   // a sentence if somebody changed it meanwhile
  bool applied() const;
  // One sentence for all that was not applied; "" if all was.
  std::string not_applied() const;
};

class FrequencyControl {
 public:
  FrequencyControl(Sysfs& sysfs, std::string directory, std::uint32_t lock_wait_ms = 2000)
      : sysfs_(sysfs), directory_(std::move(directory)), lock_wait_ms_(lock_wait_ms) {}

  // "" if policies can be capped here, as far as can be known without trying.
  std::string why_not();
  // `owner` holds a cap from now on, on every policy; in place of one that it held.
  FrequencyReport cap(const Owner& owner, std::uint64_t khz);
  FrequencyReport release(const Owner& owner);
  FrequencyReport release_lasting();
  // Drops the owners that died, and tries again what could not be restored.
  FrequencyReport restore_stale();
  // Who holds caps.
  Result<FrequencyJournal> journal();

  // To be called 50 ms after cap() or later: fills in effective_khz, and the reason if the clock
  // is above what was applied.
  void measure_effect(FrequencyReport& report);

 private:
  template <typename Change>
  FrequencyReport change(const Change& change_owners);
  template <typename Leaves>
  FrequencyReport drop(const Leaves& leaves);
  void add_owner(FrequencyJournal& journal, const Owner& owner, std::uint64_t khz,
                 FrequencyReport& report);
  Status apply(const Directory& directory, FrequencyJournal& journal, FrequencyReport& report);
  void check_boost(const FrequencyJournal& journal, FrequencyReport& report);
  std::string boot_id();

  Sysfs& sysfs_;
  std::string directory_;
  std::uint32_t lock_wait_ms_;
};

}  // namespace perdure::energy
