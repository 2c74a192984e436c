// SPDX-License-Identifier: BSD-3-Clause
//
// The order of writes in apply():
//
//   1  the journal: owners, originals, and every value that is about to be written (energy.J1)
//   2  the values, policy by policy; min before max where max is lowered, after it elsewhere
//      (energy.F3)
//   3  what the kernel says they are now; then the journal without the policies that are done
//      (energy.J2)
//
// Killed before 1 is durable, nothing has changed. Killed later, a process that applies the same
// journal again finds each limit at the value from before, or at one of `ours`, and continues.
#include "energy/frequency.hpp"
#include "base/quantity.hpp"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <thread>

#include "energy/state_directory.hpp"

namespace perdure::energy {
namespace {

constexpr const char* policies_path = "sys/devices/system/cpu/cpufreq";
// Drivers round to a step of the bus clock at most.
constexpr std::uint64_t step_khz = 100'000;
// A clock that is above the cap by more than this was not capped.
constexpr std::uint64_t effect_slack_percent = 5;

std::string path_of(const std::string& policy, const char* file) {
  return std::string(policies_path) + "/" + policy + "/" + file;
}

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

std::vector<std::uint64_t> numbers_of(const std::string& text) {
  std::vector<std::uint64_t> numbers;
  for (const std::string& word : words_of(text)) {
    if (const auto number = number_in<std::uint64_t>(word)) numbers.push_back(*number);
  }
  return numbers;
}

std::string mhz(std::uint64_t khz) {
  return std::to_string(khz / 1000) + " MHz";
}

std::string refused(const char* file, int error_number) {
  std::string text = std::string(file) + ": " + std::strerror(error_number);
  if (error_number == EACCES || error_number == EPERM || error_number == EROFS) {
    text += "; let an administrator make the file writable for you (docs/energy.md)";
  }
  return text;
}

// One limit of one policy that is to be changed.
struct Write {
  PolicyRecord* policy;
  Limit* limit;
  const char* file;
  std::uint64_t before_khz;
  std::uint64_t wanted_khz;
  PolicyReport* report;
};

bool is_ours(const Limit& limit, std::uint64_t khz) {
  const bool interrupted = limit.ours_khz.size() > 1;  // died between the steps 1 and 3
  return std::ranges::any_of(limit.ours_khz, [&](std::uint64_t ours) {
    const std::uint64_t apart = khz > ours ? khz - ours : ours - khz;
    return apart == 0 || (interrupted && apart <= step_khz);
  });
}

std::uint64_t least_cap(const PolicyRecord& policy, std::uint64_t otherwise) {
  for (const CapOwner& owner : policy.owners) otherwise = std::min(otherwise, owner.cap_khz);
  return otherwise;
}

PolicyReport& report_of(FrequencyReport& report, const std::string& policy) {
  const auto known = std::ranges::find(report.policies, policy, &PolicyReport::policy);
  if (known != report.policies.end()) return *known;
  return report.policies.emplace_back(PolicyReport{policy, 0, {}, {}, {}});
}

// EBUSY passes by: a processor that comes or goes.
int write_patiently(Sysfs& sysfs, const std::string& path, std::uint64_t khz) {
  int failed = 0;
  for (int attempt = 0; attempt < 3; ++attempt) {
    failed = sysfs.write(path, std::to_string(khz));
    if (failed != EBUSY) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return failed;
}

// Step 2 and the first half of 3 for one limit.
void carry_out(Sysfs& sysfs, const Write& write) {
  const std::string path = path_of(write.policy->name, write.file);
  const int failed = write_patiently(sysfs, path, write.wanted_khz);
  const auto now = read_number(sysfs, path);
  write.limit->ours_khz = {now.value_or(write.wanted_khz)};
  if (failed == ENOENT || !now) {
    write.report->reason = "the policy has vanished";
  } else if (failed != 0) {
    write.report->reason = refused(write.file, failed);
  } else if (*now == write.before_khz) {
    write.report->reason = std::string("the kernel accepted ") + mhz(write.wanted_khz) + " for " +
                           write.file + " and kept " + mhz(*now);
  }
}

// What is to be written to one limit; nothing if it is right, or another's.
std::optional<Write> plan_write(Sysfs& sysfs, PolicyRecord& policy, Limit& limit, const char* file,
                                std::uint64_t wanted_khz, PolicyReport& report) {
  const auto now = read_number(sysfs, path_of(policy.name, file));
  if (!now) {
    report.reason = "the policy has vanished";
    return std::nullopt;
  }
  if (*now == wanted_khz) return std::nullopt;
  if (!is_ours(limit, *now)) {
    report.reason = std::string("somebody else has set ") + file + " to " + mhz(*now) +
                    " meanwhile; it was left alone";
    return std::nullopt;
  }
  limit.ours_khz = {*now, wanted_khz};
  return Write{&policy, &limit, file, *now, wanted_khz, &report};
}

// energy.F6: the journal may be a stranger's, what the machine offers is not. False: the policy is
// gone.
bool bound_to_machine(Sysfs& sysfs, PolicyRecord& policy) {
  const auto least = read_number(sysfs, path_of(policy.name, "cpuinfo_min_freq"));
  const auto most = read_number(sysfs, path_of(policy.name, "cpuinfo_max_freq"));
  if (!least || !most || *least > *most) return false;
  for (std::uint64_t* khz : {&policy.max.original_khz, &policy.min.original_khz}) {
    *khz = std::clamp(*khz, *least, *most);
  }
  for (CapOwner& owner : policy.owners) owner.cap_khz = std::clamp(owner.cap_khz, *least, *most);
  return true;
}

// Both limits of a policy, in the order of energy.F3.
void plan_policy(Sysfs& sysfs, PolicyRecord& policy, PolicyReport& report,
                 std::vector<Write>& writes) {
  if (!bound_to_machine(sysfs, policy)) {
    report.reason = "the policy has vanished";
    return;
  }
  const std::uint64_t max_khz = least_cap(policy, policy.max.original_khz);
  const std::uint64_t min_khz = std::min(policy.min.original_khz, max_khz);
  const auto min = plan_write(sysfs, policy, policy.min, "scaling_min_freq", min_khz, report);
  const auto max = plan_write(sysfs, policy, policy.max, "scaling_max_freq", max_khz, report);
  const bool lowers = max && max->wanted_khz < max->before_khz;
  if (min && lowers) writes.push_back(*min);
  if (max) writes.push_back(*max);
  if (min && !lowers) writes.push_back(*min);
}

// True when nothing of ours is left in the policy (energy.J2).
bool is_restored(Sysfs& sysfs, const PolicyRecord& policy) {
  if (!policy.owners.empty()) return false;
  const auto is_back = [&](const Limit& limit, const char* file) {
    const auto now = read_number(sysfs, path_of(policy.name, file));
    return now && (*now == limit.original_khz || !is_ours(limit, *now));
  };
  return is_back(policy.max, "scaling_max_freq") && is_back(policy.min, "scaling_min_freq");
}

template <typename Leaves>
void drop_owners(FrequencyJournal& journal, const Leaves& leaves) {
  for (PolicyRecord& policy : journal.policies) std::erase_if(policy.owners, leaves);
}

const char* path_of(BoostKnob knob) {
  return knob == BoostKnob::cpufreq ? "sys/devices/system/cpu/cpufreq/boost"
                                    : "sys/devices/system/cpu/intel_pstate/no_turbo";
}

// The knob that this machine has, of those that are known.
Boost find_boost(Sysfs& sysfs) {
  for (const BoostKnob knob : {BoostKnob::cpufreq, BoostKnob::intel_pstate}) {
    const auto value = read_number(sysfs, path_of(knob));
    if (value && *value <= 1) return {knob, *value};
  }
  return {};
}

}  // namespace

std::vector<FrequencyPolicy> frequency_policies(Sysfs& sysfs) {
  std::vector<FrequencyPolicy> policies;
  for (const std::string& name : sysfs.list(policies_path)) {
    if (!name.starts_with("policy")) continue;
    FrequencyPolicy policy;
    policy.name = name;
    policy.driver = read_text(sysfs, path_of(name, "scaling_driver"));
    policy.governor = read_text(sysfs, path_of(name, "scaling_governor"));
    policy.governors = words_of(read_text(sysfs, path_of(name, "scaling_available_governors")));
    policy.min_khz = read_number(sysfs, path_of(name, "scaling_min_freq"));
    policy.max_khz = read_number(sysfs, path_of(name, "scaling_max_freq"));
    policy.current_khz = read_number(sysfs, path_of(name, "scaling_cur_freq"));
    policy.least_khz = read_number(sysfs, path_of(name, "cpuinfo_min_freq"));
    policy.most_khz = read_number(sysfs, path_of(name, "cpuinfo_max_freq"));
    policy.steps_khz = numbers_of(read_text(sysfs, path_of(name, "scaling_available_frequencies")));
    std::ranges::sort(policy.steps_khz);
    policy.settable = policy.max_khz && sysfs.writable(path_of(name, "scaling_max_freq"));
    policies.push_back(std::move(policy));
  }
  std::ranges::sort(policies, [](const auto& a, const auto& b) {
    return a.name.size() != b.name.size() ? a.name.size() < b.name.size() : a.name < b.name;
  });
  return policies;
}

bool FrequencyReport::applied() const {
  return !policies.empty() && not_applied().empty();
}

std::string FrequencyReport::not_applied() const {
  if (!reason.empty()) return reason;
  const auto fails = [](const PolicyReport& policy) { return !policy.reason.empty(); };
  const auto first = std::ranges::find_if(policies, fails);
  if (first == policies.end()) return {};
  const auto failed = std::ranges::count_if(policies, fails);
  std::string text = first->policy + ": " + first->reason;
  if (failed > 1) text += " (and " + std::to_string(failed - 1) + " more policies)";
  return text;
}

std::string FrequencyControl::boot_id() {
  return read_text(sysfs_, "proc/sys/kernel/random/boot_id");
}

std::string FrequencyControl::why_not() {
  const auto policies = frequency_policies(sysfs_);
  if (policies.empty()) {
    return "this machine has no frequency policies (/" + std::string(policies_path) +
           " is empty; usual in virtual machines)";
  }
  if (std::ranges::any_of(policies, [](const auto& p) { return p.settable; })) {
    return {};
  }
  return refused("scaling_max_freq", EACCES);
}

void FrequencyControl::add_owner(FrequencyJournal& journal, const Owner& owner, std::uint64_t khz,
                                 FrequencyReport& report) {
  for (const FrequencyPolicy& policy : frequency_policies(sysfs_)) {
    PolicyReport& about = report_of(report, policy.name);
    about.requested_khz = std::max(khz, policy.least_khz.value_or(0));
    if (!policy.max_khz || !policy.min_khz) {
      about.reason = "the policy has vanished";
      continue;
    }
    if (!policy.settable) {
      about.applied_khz = policy.max_khz;
      about.reason = refused("scaling_max_freq", EACCES);
      continue;
    }
    auto known = std::ranges::find(journal.policies, policy.name, &PolicyRecord::name);
    if (known == journal.policies.end()) {
      journal.policies.push_back({policy.name,
                                  {*policy.max_khz, {*policy.max_khz}},
                                  {*policy.min_khz, {*policy.min_khz}},
                                  {}});
      known = journal.policies.end() - 1;
    }
    std::erase_if(known->owners, [&](const CapOwner& cap) { return cap.owner == owner; });
    known->owners.push_back({owner, about.requested_khz});
  }
}

Status FrequencyControl::apply(const Directory& directory, FrequencyJournal& journal,
                               FrequencyReport& report) {
  std::vector<Write> writes;
  for (const PolicyRecord& policy : journal.policies) report_of(report, policy.name);
  for (PolicyRecord& policy : journal.policies) {
    plan_policy(sysfs_, policy, report_of(report, policy.name), writes);
  }
  PERDURE_TRY(store_journal(directory, journal));              // 1
  for (const Write& write : writes) carry_out(sysfs_, write);  // 2
  for (PolicyReport& about : report.policies) {
    about.applied_khz = read_number(sysfs_, path_of(about.policy, "scaling_max_freq"));
  }
  check_boost(journal, report);
  std::erase_if(journal.policies,
                [&](const PolicyRecord& policy) { return is_restored(sysfs_, policy); });
  return store_journal(directory, journal);  // 3
}

void FrequencyControl::check_boost(const FrequencyJournal& journal, FrequencyReport& report) {
  const Boost now = find_boost(sysfs_);
  const Boost& before = journal.boost;
  if (now.knob == BoostKnob::none || now.knob != before.knob || now.value == before.value) return;
  report.boost = std::string("/") + path_of(now.knob) + " was " + std::to_string(before.value) +
                 " when the clock was capped and is " + std::to_string(now.value) +
                 ": somebody else changed it";
}

template <typename Change>
FrequencyReport FrequencyControl::change(const Change& change_owners) {
  FrequencyReport report;
  const auto try_to = [&]() -> Status {
    PERDURE_TRY_ASSIGN(const auto lock, StateLock::take(directory_, lock_wait_ms_));
    PERDURE_TRY_ASSIGN(auto journal, load_journal(lock.directory(), boot_id()));
    if (journal.policies.empty()) journal.boost = find_boost(sysfs_);
    Processes processes;
    drop_owners(journal, [&](const CapOwner& cap) { return !processes.is_alive(cap.owner); });
    change_owners(journal, report);
    return apply(lock.directory(), journal, report);
  };
  if (const Status changed = try_to(); !changed.ok()) report.reason = changed.message();
  return report;
}

FrequencyReport FrequencyControl::cap(const Owner& owner, std::uint64_t khz) {
  FrequencyReport none;
  none.reason = why_not();
  if (!none.reason.empty()) return none;
  return change([&](FrequencyJournal& journal, FrequencyReport& report) {
    add_owner(journal, owner, khz, report);
  });
}

// Owners leave for which `leaves` holds. Nobody holds a cap where there is no state.
template <typename Leaves>
FrequencyReport FrequencyControl::drop(const Leaves& leaves) {
  if (!std::filesystem::exists(directory_)) return {};
  return change([&](FrequencyJournal& journal, FrequencyReport&) { drop_owners(journal, leaves); });
}

FrequencyReport FrequencyControl::release(const Owner& owner) {
  return drop([&](const CapOwner& cap) { return cap.owner == owner; });
}

FrequencyReport FrequencyControl::release_lasting() {
  return drop([](const CapOwner& cap) { return cap.owner.lasting; });
}

FrequencyReport FrequencyControl::restore_stale() {
  return drop([](const CapOwner&) { return false; });
}

Result<FrequencyJournal> FrequencyControl::journal() {
  const auto directory = Directory::open(directory_, Trust::group);
  if (directory.status().code() == Code::not_found) return FrequencyJournal{boot_id(), {}, {}};
  if (!directory.ok()) return directory.status();
  return load_journal(directory.value(), boot_id());
}

void FrequencyControl::measure_effect(FrequencyReport& report) {
  for (PolicyReport& policy : report.policies) {
    policy.effective_khz = read_number(sysfs_, path_of(policy.policy, "scaling_cur_freq"));
    if (!policy.effective_khz || !policy.applied_khz || !policy.reason.empty()) continue;
    if (*policy.effective_khz <= *policy.applied_khz * (100 + effect_slack_percent) / 100) continue;
    policy.reason =
        "capped at " + mhz(*policy.applied_khz) + ", but it runs at " + mhz(*policy.effective_khz);
  }
}

}  // namespace perdure::energy
