// SPDX-License-Identifier: BSD-3-Clause
#include "levels/choice.hpp"

#include <algorithm>

namespace perdure {
namespace {

// levels.A1. Whether images of the version count more than the pool.
bool counts_more(const Census& nodes, VersionId images, VersionId pool) {
  if (images <= pool) return false;
  if (is_newer(images, pool)) return true;
  return std::ranges::any_of(nodes.files_in_use(), [pool](const PoolFileFact* file) {
    return file != nullptr && file->head.version > pool.version;
  });
}

}  // namespace

Result<LevelChoice> choose_level(const Holdings& holdings) {
  LevelChoice choice;
  choice.drain = holdings.drains.size();
  std::optional<JobLineage> nodes;
  if (holdings.nodes != nullptr) nodes = {holdings.nodes->job.job_id, holdings.nodes->lineage()};
  if (nodes) choice.lineage = nodes->lineage;
  if (holdings.pool) {
    choice.level = RestartLevel::pool;
    choice.id = holdings.pool->id;
    if (holdings.pool->restored) return choice;
  }
  if (nodes) choice.images = plan_recovery(*holdings.nodes);
  if (choice.images && holdings.pool &&
      !counts_more(*holdings.nodes, choice.images->id, choice.id)) {
    choice.images.reset();
  }
  if (choice.images) {
    choice.level = RestartLevel::nodes;
    choice.id = choice.images->id;
  }
  const VersionId held = choice.id;
  for (std::size_t i = 0; i < holdings.drains.size(); ++i) {
    PERDURE_TRY_ASSIGN(DrainOffer offer, offer_of(holdings.drains[i], nodes, held));
    choice.incarnation_max = std::max(choice.incarnation_max, offer.versions.incarnation_max);
    const auto& manifests = offer.versions.manifests;
    if (!manifests.empty() && is_newer(manifests.front().id, held) &&
        choice.id < manifests.front().id) {
      choice.level = RestartLevel::drain;
      choice.id = manifests.front().id;
      choice.lineage = offer.lineage;
      choice.drain = i;
    }
    if (offer.fork) choice.forks.emplace_back(i, std::move(offer));
  }
  return choice;
}

}  // namespace perdure
