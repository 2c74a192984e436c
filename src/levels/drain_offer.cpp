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
  const auto directory = Directory::open(place, trust_unless(false));
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

Result<DrainOffer> offer_of(const std::string& place, const std::optional<LeaseRecord>& newest,
                            const std::optional<NodesHold>& held) {
  DrainOffer offer;
  if (held) {
    offer.lineage = held->lineage;
    PERDURE_TRY_ASSIGN(offer.versions, find_versions(place, held->lineage));
  }
  if (!newest || (held && newest->job.job_id != held->job)) return offer;
  const JobId lineage = lineage_of(newest->job);
  if (held && lineage == held->lineage) return offer;
  PERDURE_TRY_ASSIGN(auto found, find_versions(place, lineage));
  bool went_elsewhere = !held && found.manifests.empty() && !found.ancestors.empty();
  // A lineage that was made of images may have drained none, nor any before it.
  if (went_elsewhere) {
    PERDURE_TRY_ASSIGN(went_elsewhere, has_versions(place));
  }
  if (went_elsewhere) {
    return Status(Code::not_found, place, ": the run of ", newest->text(), " went on from version ",
                  found.ancestors.back().until.version,
                  ", which is not there any more, nor is a newer one of that run; start the job on "
                  "nodes that have its pool, or add take=LINEAGE to PERDURE_LEVELS with one of the "
                  "directories there, or remove them to begin anew");
  }
  const Kinship kinship =
      held ? kinship_of(lineage, found.ancestors, held->lineage, held->id) : Kinship::continuation;
  if (kinship == Kinship::continuation || held->id.version == 0) {
    choose_newer(offer, std::move(found), lineage);
    return offer;
  }
  offer.versions.incarnation_max = std::max(offer.versions.incarnation_max, found.incarnation_max);
  if (kinship != Kinship::fork) return offer;
  const auto from = std::ranges::find(found.ancestors, held->lineage, &Ancestor::lineage);
  const bool drained =
      !found.manifests.empty() && lineage_of(found.manifests.front().job) == lineage;
  offer.fork = drained ? newest_of(found) : from->until;
  offer.fork_lineage = lineage;
  offer.forked_from = from->until;
  return offer;
}

}  // namespace perdure
