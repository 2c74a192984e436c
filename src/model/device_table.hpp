// SPDX-License-Identifier: BSD-3-Clause
//
// The device table: what each kind of memory or storage costs in time and energy, with its source.
//
// One table feeds the delay emulation (pmem), the simulator and the planner. Its memory models come
// from data/devices.json, which is compiled in; PERDURE_DEVICES=PATH in the environment is a file
// of the same form, whose models are added and win. A quantity that no source gives is absent, and
// whoever needs it says so instead of assuming one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.hpp"

namespace perdure {

struct MemoryModel {
  std::string name;         // "paper-nvm-9.5", "dram-1/8", "optane-100", …
  std::string description;  // one line for people
  std::string assembly;     // "cell", "chip", "module" or "emulation": never compared across
  std::optional<double> read_latency_ns;
  std::optional<double> write_latency_ns;
  std::optional<double> commit_latency_ns;  // of one flush-and-fence, on top of the writes
  std::optional<double> read_gb_per_s;      // 10^9 bytes per second; absent: not limited
  std::optional<double> write_gb_per_s;
  std::optional<double> write_queue_bytes;  // of writes that wait inside; absent: not limited
  std::optional<double> read_nj_per_line;   // per 64-byte line
  std::optional<double> write_nj_per_line;
  std::optional<double> standby_uw_per_mb;
  std::optional<double> endurance_writes;
  std::uint32_t granule_bytes = 64;  // smallest write of the medium
  std::uint32_t access_bytes = 64;   // the access that the latencies are of: a line, or a page
  std::string source;                // where the numbers come from
  std::string derivation;            // how they were made from the source; empty: as printed there
};

// The key of a quantity in the table; `member` is one of MemoryModel's quantities.
std::string_view key_of(std::optional<double> MemoryModel::* member);

// Memory models that are simulated together, by their names.
struct DevicePreset {
  std::string name;
  std::string description;
  std::string dram;
  std::string mram;
  std::string flash;
};

// All memory models in the order of the file; parsed once.
Result<std::vector<MemoryModel>> device_table();

// The model called `name`, possibly changed by "name,key=value,…" with the keys read_latency_ns,
// write_latency_ns, commit_latency_ns, read_gb_per_s, write_gb_per_s, write_queue_bytes. Unknown
// names and keys are errors that list the known ones.
Result<MemoryModel> find_device(const std::string& spec);

// The presets of data/devices.json, then those of PERDURE_DEVICES, which win; and one by name.
Result<std::vector<DevicePreset>> device_presets();
Result<DevicePreset> find_preset(const std::string& name);

// Parses one JSON document of the form of data/devices.json; a quantity that is null is absent.
// Presets may name models of another file.
Result<std::vector<DevicePreset>> parse_device_presets(const std::string& json);
Result<std::vector<MemoryModel>> parse_device_table(const std::string& json);

}  // namespace perdure
