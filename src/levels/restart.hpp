// SPDX-License-Identifier: BSD-3-Clause
//
// Restart: opens a job's pool with the newest version that any level can give every rank.
//
//   1  files of ranks that are on other nodes are moved                        (bring_back.hpp)
//   2  if some rank's file is nowhere, images or a drain give what is newest
//   3  the pool is opened; a copy of a newer version on another level takes its place
//
// If what counts was made by another number of ranks, and that is accepted, it is divided anew
// (other_ranks.hpp).
//
// Which version counts is said by choice.hpp, from what is whole.
//
// Invariants
//   levels.A8  Damage is never passed over without a word. If a rank's file is damaged, and not
//       lost, and what other levels have is older than what it holds, the start is refused, and
//       says what it is and how to have it, unless an older version was asked for
//       (PERDURE_ALLOW_OLDER). Its header and its data are alike. The file is kept. An image, guard
//       or drained version that is damaged counts as lost, and is reported: its data are read
//       before it is chosen, or else the next one is.
//
// What does not count, as a later start gave it up (levels.hpp, levels.K3), is reported. If nothing
// newer can be had, as the drain from which that start went on can't be read, the start is refused,
// and nothing was deleted.
//
// Threads: collective calls. Failure: on all ranks or on none.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/bring_back.hpp"
#include "levels/census.hpp"
#include "levels/choice.hpp"
#include "levels/leased_drains.hpp"
#include "levels/manifest.hpp"
#include "levels/other_ranks.hpp"
#include "pool/pool_directory.hpp"

namespace perdure {

class Restart {
 public:
  // After LeasedDrains::look(). `take`: of LevelSettings.
  Restart(Group& group, std::string directory, Trust trust, LeasedDrains& leased,
          const std::optional<JobId>& take)
      : group_(group),
        directory_(std::move(directory)),
        trust_(trust),
        leased_(leased),
        take_(take),
        back_(group, directory_, trust),
        other_ranks_(group, directory_, trust) {}

  // [collective]
  Result<std::unique_ptr<Pool>> open(const OpenOptions& options);
  // What the nodes had before anything was done; without files if no node knows of the pool.
  const Census& census() const { return census_; }
  // What was done, in sentences.
  const std::vector<std::string>& sentences() const { return sentences_; }
  // VersionTaker::whole_elsewhere().
  const std::string& whole_elsewhere() const { return whole_elsewhere_; }

 private:
  Result<std::unique_ptr<Pool>> open_whole(const OpenOptions& options);
  Result<std::unique_ptr<Pool>> open_found(const OpenOptions& options);
  Result<std::string> change_ranks();
  Result<std::string> drain_before(const LevelChoice& choice);
  Result<std::string> use_other(const Manifest& manifest, std::uint64_t incarnation_max);
  Result<std::string> bring_drained(const Manifest& manifest, std::uint64_t incarnation_max);
  Status check_ranks_of(const LevelChoice& drained) const;
  Status check_parts(const Pool& pool) const;
  Result<std::string> fetch_files(const OpenOptions& options);
  Result<LevelChoice> choose(const Census* nodes, const std::optional<PoolHolds>& pool);
  Result<std::vector<DrainHolds>> look_into_drains(const Census* nodes) const;
  Result<std::string> bring_back(Census census, const std::optional<PoolHolds>& pool);
  Result<std::string> use_images(const Census& census, const std::optional<RecoveryPlan>& plan);
  Result<JobId> fresh_lineage() const;
  void note(const std::string& sentence);
  Status drop_damaged(Census& census);
  void note_forks(const LevelChoice& choice, const std::optional<PoolHolds>& pool);
  void note_fork(const LeasedDrain& leased, const DrainOffer& offer, VersionId held);
  Result<std::string> use_drained(const Census* nodes, const std::optional<PoolHolds>& pool);
  Result<Manifest> begin_lineage(const LevelChoice& drained, const JobId& fresh);
  Result<std::string> take_asked(const Census& census);
  void note_given_up(const Census& census);
  Status check_drains_known() const;
  struct Elsewhere {
    VersionId id;  // version 0: there is none
    std::string where;
  };
  Result<Elsewhere> find_elsewhere(const Census& census);
  Status check_older(Census census, const OpenOptions& options, const Status& damage);
  Result<std::unique_ptr<Pool>> open_newest(const OpenOptions& options, std::unique_ptr<Pool> pool);
  Result<std::unique_ptr<Pool>> open_older(const OpenOptions& options, const Status& refused);

  Group& group_;
  std::string directory_;
  Trust trust_;
  LeasedDrains& leased_;
  std::optional<JobId> take_;
  Census census_;  // of before; without files: no node knows of a pool of this job
  std::vector<std::string> sentences_;
  std::string whole_elsewhere_;
  bool data_damaged_ = false;  // of the pool's version, on some rank
  BringBack back_;
  VersionId brought_;  // back from other levels
  OtherRanks other_ranks_;
  std::set<std::string> damaged_versions_;  // directories of drains, levels.A8
};

}  // namespace perdure
