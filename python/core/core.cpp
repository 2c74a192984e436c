// SPDX-License-Identifier: BSD-3-Clause
#include "core.hpp"

#include "status_error.hpp"

NB_MODULE(_core, core) {
  core.doc() =
      "What the command perdure reads through C++: pools, parts of cached files, traces, the "
      "device "
      "table, the simulator of memories, meters and clocks of this node.";
  const nanobind::exception<perdure::python::StatusError> error(core, "Error");  // its class
  perdure::python::bind_devices(core);
  perdure::python::bind_doctor(core);
  perdure::python::bind_energy(core);
  perdure::python::bind_levels(core);
  perdure::python::bind_pools(core);
  perdure::python::bind_parts(core);
  perdure::python::bind_sim(core);
  perdure::python::bind_traces(core);
}
