// SPDX-License-Identifier: BSD-3-Clause
//
// Recovery plan: where each rank gets the newest version that all can have. Pure: every rank makes
// the same plan from the same census.
//
// Only images and guards in the history of one lineage count: of that in which something was made
// last of all that these nodes have. Whoever began it took part of these nodes, and went on without
// what they hold of other ones. So what a later start gave up does not come back with a node that
// was away (levels.hpp, levels.K3). Of a lineage whose history no drain tells only its own count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "levels/census.hpp"

namespace perdure {

// The images of one failure group, some of which are computed from the others.
struct GroupRebuild {
  GroupFiles files;
  std::vector<std::uint32_t> lost;  // members, as indices of files.contents.members
};

struct RecoveryPlan {
  VersionId id;
  JobId lineage;                        // to which it belongs
  std::vector<std::uint32_t> image_at;  // by rank: who has its image; no_rank: it is rebuilt
  std::vector<GroupRebuild> rebuilds;
  // Whether it reads this file.
  bool uses(const LevelFileFact& fact) const;
};

// With the images and guards that count.
Census counted(const Census& census);

// The newest version of which every rank's image is somewhere, or can be rebuilt.
std::optional<RecoveryPlan> plan_recovery(const Census& census);

// The highest number of a version of which there is something that does not count; 0: none.
std::uint64_t newest_given_up(const Census& census);

// The version that can lose the most nodes of each failure group, the newest of such: what must
// stay while a newer one gets its redundancy. None if no version is guarded for all ranks.
std::optional<VersionId> best_guarded(const Census& census);

// How many nodes, whichever they are, may be lost before no version of `id` or newer can be had.
// Counts up to 3.
std::uint32_t bearable_losses(const Census& census, VersionId id);

// What there is of each version, for the sentence of a refusal.
std::string describe_holdings(const Census& census);

}  // namespace perdure
