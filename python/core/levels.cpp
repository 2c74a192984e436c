// SPDX-License-Identifier: BSD-3-Clause
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "core.hpp"
#include "levels/census.hpp"
#include "levels/pool_drain.hpp"
#include "levels/recovery_plan.hpp"
#include "levels/verify.hpp"
#include "status_error.hpp"
#include "watched.hpp"

namespace nb = nanobind;

namespace perdure::python {

namespace {

void bind_drains(nb::module_& core) {
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
         const nb::object& progress) {
        return watched(progress, [&](const Progress& watch) {
          PoolDrainOptions options;
          options.keep = keep;
          options.trust = trust_unless(any_owner);
          options.progress = watch;
          return drain_pool(directory, level, options);
        });
      },
      nb::arg("directory"), nb::arg("level"), nb::arg("keep") = 2, nb::arg("any_owner") = false,
      nb::arg("progress") = nb::none(),
      "Drains the newest versions of a pool that nobody uses. progress(bytes, of_all) is called "
      "now "
      "and then; False ends it.");
}

void bind_nodes(nb::module_& core) {
  nb::enum_<RestartLevel>(core, "RestartLevel")
      .value("none", RestartLevel::none)
      .value("pool", RestartLevel::pool)
      .value("nodes", RestartLevel::nodes)
      .value("drain", RestartLevel::drain);
  nb::class_<RestartVersion>(core, "RestartVersion", "What a restart would take.")
      .def_ro("level", &RestartVersion::level)
      .def_prop_ro("version", [](const RestartVersion& outcome) { return outcome.id.version; })
      .def_prop_ro("incarnation",
                   [](const RestartVersion& outcome) { return outcome.id.incarnation; });
  nb::class_<KeptGroup>(core, "KeptGroup", "A failure group that wrote guards.")
      .def_ro("members", &KeptGroup::members)
      .def_ro("losses", &KeptGroup::losses)
      .def_ro("missing", &KeptGroup::missing)
      .def_prop_ro("left", &KeptGroup::left)
      .def_ro("scheme", &KeptGroup::scheme);
  nb::class_<VerifiedNode::Kept>(core, "KeptOnNode", "What a node has of a version.")
      .def_prop_ro("version", [](const VerifiedNode::Kept& kept) { return kept.id.version; })
      .def_prop_ro("incarnation",
                   [](const VerifiedNode::Kept& kept) { return kept.id.incarnation; })
      .def_ro("images", &VerifiedNode::Kept::images)
      .def_ro("guards", &VerifiedNode::Kept::guards);
  nb::class_<VerifiedNode>(core, "VerifiedNode", "A node's directory of the pool.")
      .def_ro("directory", &VerifiedNode::directory)
      .def_ro("pool", &VerifiedNode::pool)
      .def_ro("ranks", &VerifiedNode::ranks)
      .def_ro("left_over", &VerifiedNode::left_over)
      .def_ro("kept", &VerifiedNode::kept)
      .def_ro("without", &VerifiedNode::without);
}

void bind_reports(nb::module_& core) {
  nb::class_<KeptVersion>(core, "KeptVersion", "A version that nodes keep beside the pool.")
      .def_prop_ro("version", [](const KeptVersion& kept) { return kept.id.version; })
      .def_prop_ro("incarnation", [](const KeptVersion& kept) { return kept.id.incarnation; })
      .def_ro("images", &KeptVersion::images)
      .def_ro("guards", &KeptVersion::guards)
      .def_ro("restorable", &KeptVersion::restorable)
      .def_ro("losses", &KeptVersion::losses)
      .def_ro("groups", &KeptVersion::groups);
  nb::class_<DrainedVersion>(core, "VersionOfDrain", "A version in the directory of a drain.")
      .def_ro("place", &DrainedVersion::place)
      .def_prop_ro("version", [](const DrainedVersion& drained) { return drained.id.version; })
      .def_prop_ro("incarnation",
                   [](const DrainedVersion& drained) { return drained.id.incarnation; })
      .def_ro("problem", &DrainedVersion::problem)
      .def_ro("fork", &DrainedVersion::fork);
  nb::class_<LevelsReport>(core, "LevelsReport", "What the levels of a job hold.")
      .def_prop_ro("job_name", [](const LevelsReport& report) { return report.job.job_name; })
      .def_prop_ro("job_id",
                   [](const LevelsReport& report) { return job_id_text(report.job.job_id); })
      .def_prop_ro("rank_count", [](const LevelsReport& report) { return report.job.ranks; })
      .def_ro("pool_files", &LevelsReport::pool_files)
      .def_ro("nodes", &LevelsReport::nodes)
      .def_ro("kept", &LevelsReport::kept)
      .def_ro("drained", &LevelsReport::drained)
      .def_ro("now", &LevelsReport::now)
      .def_ro("without_all", &LevelsReport::without_all)
      .def_ro("given_up", &LevelsReport::given_up)
      .def_ro("problems", &LevelsReport::problems)
      .def_ro("foreign", &LevelsReport::foreign);
}

void bind_verification(nb::module_& core) {
  core.def(
      "verify_levels",
      [](const std::vector<std::string>& directories, const std::vector<std::string>& drains,
         bool data, bool any_owner, const nb::object& progress) {
        return watched(progress, [&](const Progress& watch) {
          return verify_levels(directories, {drains, data, trust_unless(any_owner), watch});
        });
      },
      nb::arg("directories"), nb::arg("drains"), nb::arg("data") = true,
      nb::arg("any_owner") = false, nb::arg("progress") = nb::none(),
      "What could be lost of a job now, by the pool's directories on its nodes and its drains. "
      "progress(bytes, of_all) is called now and then; False ends it.");
  core.def(
      "levels_held",
      [](const std::vector<std::string>& directories) {
        const Census census = value_or_raise(census_of(directories, Trust::own));
        const auto guarded = best_guarded(census);
        const auto plan = plan_recovery(census);
        return std::make_pair(guarded ? guarded->version : 0, plan ? plan->id.version : 0);
      },
      nb::arg("directories"),
      "Of a pool's directories, one of each node: the version whose images can bear the most "
      "losses, and the newest one that images and guards give all ranks; 0 for none.");
}

}  // namespace

void bind_levels(nb::module_& core) {
  bind_drains(core);
  bind_nodes(core);
  bind_reports(core);
  bind_verification(core);
}

}  // namespace perdure::python
