// SPDX-License-Identifier: BSD-3-Clause
//
// Which memory models make a machine, and what is questionable about it.
#include "sim/account.hpp"

namespace perdure::sim {
namespace {

Status check_assemblies(const Devices& devices, bool mix_assemblies) {
  const MemoryModel& dram = devices.dram;
  const MemoryModel& mram = devices.mram;
  if (dram.assembly == mram.assembly || mix_assemblies) return Status::success();
  return Status(Code::invalid_argument, dram.name, " is a ", dram.assembly, " and ", mram.name,
                " a ", mram.assembly,
                ": figures of cells, chips and modules differ up to 870 times for one technology; "
                "choose models of one assembly, or ask to mix assemblies");
}

void warn(Devices& devices) {
  const MemoryModel* models[] = {&devices.mram, &devices.flash};
  for (const MemoryModel* model : models) {
    if (model->assembly == devices.dram.assembly) continue;
    devices.warnings.push_back("assemblies are mixed: " + devices.dram.name + " is a " +
                               devices.dram.assembly + ", " + model->name + " a " +
                               model->assembly);
  }
}

}  // namespace

Result<Devices> devices_of(const std::string& dram, const std::string& mram,
                           const std::string& flash, bool mix_assemblies) {
  Devices devices;
  const std::pair<const std::string&, MemoryModel&> wanted[] = {
      {dram, devices.dram}, {mram, devices.mram}, {flash, devices.flash}};
  for (const auto& [spec, model] : wanted) {
    PERDURE_TRY_ASSIGN(model, find_device(spec));
  }
  PERDURE_TRY(check_assemblies(devices, mix_assemblies));
  warn(devices);
  return devices;
}

Result<Devices> devices_of_preset(const std::string& name) {
  PERDURE_TRY_ASSIGN(const DevicePreset models, find_preset(name));
  return devices_of(models.dram, models.mram, models.flash, true);  // its author mixed them; warned
}

}  // namespace perdure::sim
