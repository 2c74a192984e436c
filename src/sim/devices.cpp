// SPDX-License-Identifier: BSD-3-Clause
//
// Which rows of the device table make a machine, and what is questionable about it.
#include "sim/account.hpp"

namespace perdure::sim {
namespace {

Status check_levels(const Devices& devices, bool mix_levels) {
  const DeviceRow& dram = devices.dram;
  const DeviceRow& mram = devices.mram;
  if (dram.level == mram.level || mix_levels) return Status::success();
  return {Code::invalid_argument,
          dram.name + " is of level " + dram.level + " and " + mram.name + " of level " +
              mram.level +
              ": figures of cells, chips and modules differ up to 870 times for one "
              "technology; choose parts of one level, or ask for mixed levels"};
}

void warn(Devices& devices) {
  const DeviceRow* rows[] = {&devices.mram, &devices.flash};
  for (const DeviceRow* row : rows) {
    if (row->level == devices.dram.level) continue;
    devices.warnings.push_back("levels are mixed: " + devices.dram.name + " is a " +
                               devices.dram.level + ", " + row->name + " a " + row->level);
  }
}

}  // namespace

Result<Devices> devices_of(const std::string& dram, const std::string& mram,
                           const std::string& flash, bool mix_levels) {
  Devices devices;
  const std::pair<const std::string&, DeviceRow&> parts[] = {
      {dram, devices.dram}, {mram, devices.mram}, {flash, devices.flash}};
  for (const auto& [spec, row] : parts) {
    Result<DeviceRow> found = find_device(spec);
    if (!found.ok()) return found.status();
    row = found.take();
  }
  PERDURE_TRY(check_levels(devices, mix_levels));
  warn(devices);
  return devices;
}

Result<Devices> devices_of_preset(const std::string& name) {
  Result<DevicePreset> preset = find_preset(name);
  if (!preset.ok()) return preset.status();
  const DevicePreset& parts = preset.value();
  return devices_of(parts.dram, parts.mram, parts.flash, true);  // its author mixed them; warned
}

}  // namespace perdure::sim
