// SPDX-License-Identifier: BSD-3-Clause
//
// The parts of perdure._core, one function per module of src/ that is bound.
#pragma once

#include <nanobind/nanobind.h>

namespace perdure::python {

void bind_devices(nanobind::module_& core);  // model/device_table.hpp
void bind_doctor(nanobind::module_& core);   // pmem/, pool/page_tracker.hpp, mpi/process_mpi.hpp
void bind_energy(nanobind::module_& core);   // energy/session.hpp, energy/meters.hpp
void bind_levels(nanobind::module_& core);   // levels/pool_drain.hpp
void bind_pools(nanobind::module_& core);    // pool/inspect.hpp
void bind_parts(nanobind::module_& core);    // cache/part_directory.hpp
void bind_sim(nanobind::module_& core);      // sim/run.hpp, sim/sweep.hpp
void bind_traces(nanobind::module_& core);   // trace/reader.hpp, trace/import.hpp

}  // namespace perdure::python
