// SPDX-License-Identifier: BSD-3-Clause
//
// Choice: from which level a start takes its version. Pure. A restart acts on it (restart.hpp), and
// `perdure pool verify` says it (verify.hpp).
//
// Invariants
//   levels.A1  What is newer counts, wherever it is: a node that comes back may hold files of long
//       ago, and the pool of all ranks may be an old copy. Ages are VersionIds: an incarnation is a
//       time and a random number (levels.B1), so two histories of a job never share one. Of equal
//       ones the pool's counts, and then that of the nodes. But where some rank is ahead of the
//       version that the pool would go back to, an image of that version in a later incarnation
//       counts more: the pool may be old on the rank that lags, while another had left the commit
//       and put into arrays that the third had not yet opened again (commit.cpp, pool.I4 holds
//       within one history). Images are never stored to.
//   levels.A6  A drained version of another lineage counts only where that lineage was made from
//       what the nodes have, or from a later version, or where the nodes have none. Otherwise they
//       hold versions beyond it, which were acknowledged, and which whoever went on from the drain
//       did not know: they stay, and the sentence has both numbers. The user may ask for the other.
//
// What was given up does not count (levels.hpp, levels.K3). A pool to which a restore went back,
// and which has not committed since, says so by its next number (recover.cpp), and nothing newer
// takes its place. What is committed later is of a higher incarnation than all that was given up.
//
// Threads: any.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "levels/census.hpp"
#include "levels/drain_offer.hpp"
#include "levels/recovery_plan.hpp"

namespace perdure {

// The version that the ranks' files give all ranks, with what is committed with it
// (joined_files.hpp, levels.K5).
struct PoolHolds {
  VersionId id;
  bool restored = false;  // what is newer was given up
};

// What is whole.
struct Holdings {
  const Census* nodes = nullptr;  // null: no node knows of the job
  std::optional<PoolHolds> pool;
  std::span<const DrainHolds> drains;
};

enum class RestartLevel { none, pool, nodes, drain };

struct LevelChoice {
  RestartLevel level = RestartLevel::none;
  VersionId id;
  JobId lineage;          // to which it belongs
  std::size_t drain = 0;  // of Holdings::drains
  // How the nodes give it, if they have one that counts more than the pool's, whatever the level.
  std::optional<RecoveryPlan> images;
  std::uint64_t incarnation_max = 0;                           // that the drains know
  std::vector<std::pair<std::size_t, DrainOffer>> forks = {};  // what does not count (levels.A6)
};

// Code::not_found where no node knows of the job and a drain's newest run went on from a version
// that is gone.
Result<LevelChoice> choose_level(const Holdings& holdings);

}  // namespace perdure
