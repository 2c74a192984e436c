// SPDX-License-Identifier: BSD-3-Clause
//
// Targets: the JSON documents that are read (journal of frequencies, plan, profile, device table),
// and the file of the writer tokens.
#include <array>
#include <cstring>

#include "base/assert.hpp"
#include "energy/frequency_journal.hpp"
#include "energy/settings.hpp"
#include "energy/tokens.hpp"
#include "model/device_table.hpp"
#include "scratch_files.hpp"
#include "targets.hpp"

namespace perdure::fuzz {
namespace {

using namespace energy;  // NOLINT(google-build-using-namespace)

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// What was read can be written, and is the same when it is read again.
bool run_journal(std::span<const std::byte> bytes) {
  static const ScratchFiles scratch;
  scratch.write("frequency.json", bytes);
  const auto directory = Directory::open(scratch.path());
  PERDURE_ASSERT(directory.ok());
  const auto journal = load_journal(directory.value(), "boot");
  if (!journal.ok() || journal.value().policies.empty()) return false;
  Processes processes;
  for (const PolicyRecord& policy : journal.value().policies) {
    PERDURE_ASSERT(policy.name.find('/') == std::string::npos);
    for (const CapOwner& cap : policy.owners) (void)processes.is_alive(cap.owner);
  }
  if (!store_journal(directory.value(), journal.value()).ok()) return true;
  const auto again = load_journal(directory.value(), "boot");
  PERDURE_ASSERT(again.ok());
  PERDURE_ASSERT(again.value().policies.size() == journal.value().policies.size());
  return true;
}

std::vector<Bytes> journal_seeds() {
  return {bytes_of(R"({"schema": 2, "kind": "perdure-frequency-journal", "boot_id": "boot",
 "boost_knob": "none", "boost": 0, "policies": [{"name": "policy0",
 "max": {"original_kHz": 2500000, "ours_kHz": [1200000]},
 "min": {"original_kHz": 800000, "ours_kHz": [800000]},
 "owners": [{"pid": 1, "start_ticks": 3, "pid_namespace": 4026531836, "serial": 1,
 "lasting": false, "cap_kHz": 1200000}]}]})")};
}

// The file holds a count of tickets and a futex; locks say the rest.
bool run_tokens(std::span<const std::byte> bytes) {
  static const ScratchFiles scratch;
  Bytes page(bytes.begin(), bytes.end());
  page.resize(std::min<std::size_t>(page.size(), 4096));
  scratch.write("tokens", page);
  const unsigned limit = bytes.empty() ? 0 : static_cast<unsigned>(bytes.back());
  WriterTokens tokens(scratch.path_of("tokens"), true);
  PERDURE_ASSERT(tokens.acquire(limit, 0));  // nobody else is there
  tokens.release();
  return tokens.counters().taken == 1;
}

std::vector<Bytes> tokens_seeds() {
  return {Bytes(16), Bytes(4096), Bytes(16, std::byte{0xff})};
}

bool run_plan(std::span<const std::byte> bytes) {
  const auto plan = parse_plan(text_of(bytes), "plan");
  if (!plan.ok()) return false;
  PERDURE_ASSERT(!plan.value().levels.empty() && plan.value().levels.front().every == 1);
  return true;
}

std::vector<Bytes> plan_seeds() {
  return {bytes_of(R"({"schema": 1, "kind": "perdure-energy-plan", "interval_s": 12.5,
 "schedule": {"works_s": [10.0, 12.5]}, "levels": [
 {"name": "nvm", "every": 1, "write": {"freq_kHz": 1200000, "writers": 2}},
 {"name": "disk", "every": 4, "path": "/x", "read": {"freq_kHz": null, "writers": 0}}]})")};
}

bool run_profile(std::span<const std::byte> bytes) {
  const auto profile = parse_profile(text_of(bytes), "profile");
  if (!profile.ok()) return false;
  for (const IoKind kind : {IoKind::read, IoKind::write}) {
    const auto best = best_settings(profile.value(), kind);
    PERDURE_ASSERT(!best || best->writers > 0);
  }
  return true;
}

std::vector<Bytes> profile_seeds() {
  return {bytes_of(R"({"schema": 1, "kind": "perdure-energy-profile",
 "fingerprint": {"device": {"name": "nvme0n1"}}, "points": [
 {"op": "write", "freq_kHz": 1200000, "writers": 2,
  "bandwidth_MBps": {"mean": 900.5, "low": 880, "high": 920},
  "energy_J_per_MB": {"mean": 0.25, "low": 0.2, "high": 0.3}},
 {"op": "read", "freq_kHz": null, "writers": 1, "bandwidth_MBps": {"mean": 9}},
 {"op": "write", "writers": 1, "bandwidth_MBps": {"mean": 7, "low": -1},
  "energy_J_per_MB": {"mean": 1}}]})")};
}

// A document of devices and presets, or the words after a device's name.
bool run_device_table(std::span<const std::byte> bytes) {
  const std::string text = text_of(bytes);
  if (text.starts_with(',')) return find_device("dram" + text).ok();
  const auto rows = parse_device_table(text);
  const auto presets = parse_device_presets(text);
  if (rows.ok()) {
    for (const MemoryModel& row : rows.value()) PERDURE_ASSERT(!row.name.empty());
  }
  return rows.ok() && presets.ok();
}

std::vector<Bytes> device_table_seeds() {
  return {bytes_of(R"({"devices": [{"name": "x", "assembly": "emulation", "description": "d",
 "read_latency_ns": 0, "write_latency_ns": 1.5, "read_gb_per_s": 9.5, "granule_bytes": 64,
 "standby_uw_per_mb": null, "source": "s"}],
 "presets": [{"name": "p", "description": "d", "dram": "a", "mram": "b", "flash": "c"}]})"),
          bytes_of(R"({"devices": []})"), bytes_of(",read_latency_ns=7,write_gb_per_s=1e3")};
}

}  // namespace

const Target journal_target = {"journal", run_journal, journal_seeds};
const Target tokens_target = {"tokens", run_tokens, tokens_seeds};
const Target plan_target = {"plan", run_plan, plan_seeds};
const Target profile_target = {"profile", run_profile, profile_seeds};
const Target device_table_target = {"device_table", run_device_table, device_table_seeds};

}  // namespace perdure::fuzz
