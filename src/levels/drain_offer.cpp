// SPDX-License-Identifier: BSD-3-Clause
#include "levels/drain_offer.hpp"

#include <algorithm>

namespace perdure {
namespace {

VersionId newest_of(const FoundVersions& found) {
  return found.manifests.empty() ? VersionId{} : found.manifests.front().id;
}

// Both are of one job: the newer one counts.
void choose_newer(DrainOffer& offer, FoundVersions found, const JobId& lineage) {
  const std::uint64_t incarnation_max =
      std::max(offer.versions.incarnation_max, found.incarnation_max);
  if (newest_of(offer.versions) < newest_of(found)) {
    offer.versions = std::move(found);
    offer.lineage = lineage;
  }
  offer.versions.incarnation_max = incarnation_max;
}

// Whether any lineage has drained a version there.
Result<bool> has_versions(const std::string& place) {
  const auto directory = LevelDirectory::open(place);
  if (directory.status().code() == Code::not_found) return false;
  if (!directory.ok()) return directory.status();
  PERDURE_TRY_ASSIGN(const auto names, directory.value().names());
  for (const std::string& name : names) {
    const auto lineage = job_id_of(name);
    if (!lineage) continue;
    PERDURE_TRY_ASSIGN(const auto found, find_versions(place, lineage));
    if (!found.manifests.empty()) return true;
  }
  return false;
}

}  // namespace

Result<DrainHolds> look_into_drain(const std::string& place,
                                   const std::optional<LeaseRecord>& newest,
                                   const std::optional<JobLineage>& nodes) {
  DrainHolds drain{place, newest, {}, {}, false};
  if (nodes) {
    PERDURE_TRY_ASSIGN(drain.own, find_versions(place, nodes->lineage));
  } else {
    PERDURE_TRY_ASSIGN(drain.any, has_versions(place));
  }
  if (newest) {
    PERDURE_TRY_ASSIGN(drain.of_newest, find_versions(place, lineage_of(newest->job)));
  }
  return drain;
}

Result<DrainOffer> offer_of(const DrainHolds& drain, const std::optional<JobLineage>& nodes,
                            VersionId held) {
  DrainOffer offer;
  if (nodes) {
    offer.lineage = nodes->lineage;
    offer.versions = drain.own;
  }
  if (!drain.newest || (nodes && drain.newest->job.job_id != nodes->job)) return offer;
  const JobId lineage = lineage_of(drain.newest->job);
  if (nodes && lineage == nodes->lineage) return offer;
  const FoundVersions& found = drain.of_newest;
  // A lineage that was made of images may have drained none, nor any before it.
  if (!nodes && found.manifests.empty() && !found.ancestors.empty() && drain.any) {
    return Status(Code::not_found, drain.place, ": the run of ", drain.newest->text(),
                  " went on from version ", found.ancestors.back().until.version,
                  ", which is not there any more, nor is a newer one of that run; start the job on "
                  "nodes that have its pool, or add take=LINEAGE to PERDURE_LEVELS with one of the "
                  "directories there, or remove them to begin anew");
  }
  const Kinship kinship =
      nodes ? kinship_of(lineage, found.ancestors, nodes->lineage, held) : Kinship::continuation;
  if (kinship == Kinship::continuation || held.version == 0) {
    choose_newer(offer, found, lineage);
    return offer;
  }
  offer.versions.incarnation_max = std::max(offer.versions.incarnation_max, found.incarnation_max);
  if (kinship != Kinship::fork) return offer;
  const auto from = std::ranges::find(found.ancestors, nodes->lineage, &Ancestor::lineage);
  const bool drained =
      !found.manifests.empty() && lineage_of(found.manifests.front().job) == lineage;
  offer.fork = drained ? newest_of(found) : from->until;
  offer.fork_lineage = lineage;
  offer.forked_from = from->until;
  return offer;
}

}  // namespace perdure
