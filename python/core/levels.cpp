#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "levels/pool_drain.hpp"
#include "status_error.hpp"
#include "watched.hpp"

namespace nb = nanobind;

namespace perdure::python {

void bind_levels(nb::module_& core) {
  nb::class_<PoolDrainVersion>(core, "DrainedVersion", "A version that was to go to a level.")
      .def_prop_ro("version", [](const PoolDrainVersion& drained) { return drained.id.version; })
      .def_prop_ro("incarnation",
                   [](const PoolDrainVersion& drained) { return drained.id.incarnation; })
      .def_ro("ranks", &PoolDrainVersion::ranks)
      .def_ro("bytes", &PoolDrainVersion::bytes)
      .def_ro("written", &PoolDrainVersion::written)
      .def_ro("complete", &PoolDrainVersion::complete)
      .def_ro("missing", &PoolDrainVersion::missing)
      .def_ro("problem", &PoolDrainVersion::problem);
  nb::class_<PoolDrainReport>(core, "DrainReport", "What was drained of a pool.")
      .def_ro("place", &PoolDrainReport::place)
      .def_prop_ro("job_name", [](const PoolDrainReport& report) { return report.job.job_name; })
      .def_prop_ro("job_id",
                   [](const PoolDrainReport& report) { return job_id_text(report.job.job_id); })
      .def_prop_ro("rank_count", [](const PoolDrainReport& report) { return report.job.ranks; })
      .def_ro("versions", &PoolDrainReport::versions)
      .def_ro("problems", &PoolDrainReport::problems)
      .def_ro("stopped", &PoolDrainReport::stopped);
  core.def(
      "drain_pool",
      [](const std::string& directory, const std::string& level, std::uint32_t keep, bool any_owner,
         nb::object progress) {
        nb::python_error* raised = nullptr;
        PoolDrainOptions options;
        options.keep = keep;
        options.trust = trust_unless(any_owner);
        options.progress = watched(std::move(progress), raised);
        auto report = [&] {
          const nb::gil_scoped_release released;
          return drain_pool(directory, level, options);
        }();
        raise_again(raised);
        return value_or_raise(std::move(report));
      },
      nb::arg("directory"), nb::arg("level"), nb::arg("keep") = 2, nb::arg("any_owner") = false,
      nb::arg("progress") = nb::none(),
      "Drains the newest versions of a pool that nobody uses. progress(bytes, of_all) is called "
      "now "
      "and then; False ends it.");
}

}  // namespace perdure::python
