// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "model/device_table.hpp"
#include "status_error.hpp"

namespace nb = nanobind;

namespace perdure::python {

void bind_devices(nb::module_& core) {
  nb::class_<DeviceRow>(core, "DeviceRow", "A row of the device table; None where no source says.")
      .def_ro("name", &DeviceRow::name)
      .def_ro("description", &DeviceRow::description)
      .def_ro("level", &DeviceRow::level)
      .def_ro("read_latency_ns", &DeviceRow::read_latency_ns)
      .def_ro("write_latency_ns", &DeviceRow::write_latency_ns)
      .def_ro("commit_latency_ns", &DeviceRow::commit_latency_ns)
      .def_ro("read_gb_per_s", &DeviceRow::read_gb_per_s)
      .def_ro("write_gb_per_s", &DeviceRow::write_gb_per_s)
      .def_ro("read_nj_per_line", &DeviceRow::read_nj_per_line)
      .def_ro("write_nj_per_line", &DeviceRow::write_nj_per_line)
      .def_ro("standby_uw_per_mb", &DeviceRow::standby_uw_per_mb)
      .def_ro("endurance_writes", &DeviceRow::endurance_writes)
      .def_ro("granule_bytes", &DeviceRow::granule_bytes)
      .def_ro("access_bytes", &DeviceRow::access_bytes)
      .def_ro("source", &DeviceRow::source)
      .def_ro("derivation", &DeviceRow::derivation);
  core.def(
      "device_table", [] { return value_or_raise(device_table()); }, "All rows, in their order.");
  core.def(
      "find_device", [](const std::string& spec) { return value_or_raise(find_device(spec)); },
      nb::arg("spec"), "The row called spec, or \"name,key=value,…\".");
}

}  // namespace perdure::python
