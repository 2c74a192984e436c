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
  nb::class_<MemoryModel>(core, "MemoryModel",
                          "An entry of the device table; None where no source says.")
      .def_ro("name", &MemoryModel::name)
      .def_ro("description", &MemoryModel::description)
      .def_ro("assembly", &MemoryModel::assembly)
      .def_ro("read_latency_ns", &MemoryModel::read_latency_ns)
      .def_ro("write_latency_ns", &MemoryModel::write_latency_ns)
      .def_ro("commit_latency_ns", &MemoryModel::commit_latency_ns)
      .def_ro("read_gb_per_s", &MemoryModel::read_gb_per_s)
      .def_ro("write_gb_per_s", &MemoryModel::write_gb_per_s)
      .def_ro("write_queue_bytes", &MemoryModel::write_queue_bytes)
      .def_ro("read_nj_per_line", &MemoryModel::read_nj_per_line)
      .def_ro("write_nj_per_line", &MemoryModel::write_nj_per_line)
      .def_ro("standby_uw_per_mb", &MemoryModel::standby_uw_per_mb)
      .def_ro("endurance_writes", &MemoryModel::endurance_writes)
      .def_ro("granule_bytes", &MemoryModel::granule_bytes)
      .def_ro("access_bytes", &MemoryModel::access_bytes)
      .def_ro("source", &MemoryModel::source)
      .def_ro("derivation", &MemoryModel::derivation);
  core.def(
      "device_table", [] { return value_or_raise(device_table()); },
      "All memory models, in their order.");
}

}  // namespace perdure::python
