// SPDX-License-Identifier: BSD-3-Clause
//
// Other ranks: what a job of another number of ranks goes on with, where the pool's directory is
// not one that all of its ranks see, or where what counts is not in it.
//
// It reads the old ranks' images in a drain, which all see, each rank what it needs. If the nodes
// have a newer version, in rank files, images and guards, it is brought to the drain before, as the
// old ranks would have done it (drain_held()). What it makes is a pool of its own number of ranks,
// in a lineage of its own, which exists with its first commit (pool/rank_change.hpp).
//
// Before the new pool is there, nothing of the old ranks is stored to, renamed or removed, and
// their rank files on these nodes are locked (rank_change.hpp, pool.R1). Then these go, and images
// and guards; drained versions go as always, when newer ones of the new ranks are whole
// (manifest.hpp, levels.M2). Of records of one pool on several nodes that of the highest generation
// counts (pool.R7). A node with an older one, on which something was made since, is another run's:
// the start is refused.
//
// Threads: collective calls, where that is said. Failure: then on all ranks or on none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/bring_back.hpp"
#include "levels/census.hpp"
#include "levels/choice.hpp"
#include "levels/manifest.hpp"
#include "pool/old_ranks.hpp"

namespace perdure {

// [collective] pool.R7: gives the record to the nodes that have an older one, and the files of
// the pool their names.
Status settle_records(Group& group, const std::string& directory, Trust trust,
                      std::uint32_t lock_wait_ms);

// [collective] Whether all ranks see one directory there, with a pool in it.
Result<bool> see_one_directory(Group& group, const std::string& directory, Trust trust);

// The version that all rank files hold, if they are all there; whoever reads it finds out whether
// they do. Pure.
std::optional<PoolHolds> held_by_files(const Census& census);

// [collective] Brings a version of all ranks of the census, of their images or else of their rank
// files, which are locked, to a drain. Its manifest is there afterwards.
Status drain_held(Group& group, BringBack& back, const std::string& directory, Trust trust,
                  const Census& census, VersionId id, const std::optional<RecoveryPlan>& images,
                  const std::string& place);

// Local. A drained version as pool/old_ranks.hpp takes it.
Result<OldVersion> old_version_of(const Manifest& manifest);

// What a start does with a pool of another number of ranks. Until the pool is open, the files of
// the old ranks on these nodes are locked from the moment in which they are looked at (pool.R1).
class OtherRanks {
 public:
  OtherRanks(Group& group, const std::string& directory, Trust trust)
      : group_(group), directory_(directory), trust_(trust) {}

  // The program goes on with any number of ranks, or not. Locks are waited for so long.
  void accept(bool accepted, std::uint32_t lock_wait_ms) {
    accepted_ = accepted;
    lock_wait_ms_ = lock_wait_ms;
  }
  bool are_accepted() const { return accepted_; }

  // [collective] On one rank for each directory; once.
  Status lock();
  // Whoever is next locks them himself.
  void unlock();

  // [collective] Success: this drained version is what is divided, all images of which were read.
  // `incarnation_max` is the highest that the drain knows of. Code::damaged.
  Status divide(const Manifest& drained, std::uint64_t incarnation_max);
  bool divides() const { return drained_.has_value(); }
  // What open_pool_of() takes, with the locks. [collective]
  Result<OldVersion> take_old_version();
  std::uint64_t incarnation_max() const { return incarnation_max_; }

  // What the old ranks made holds no version, so it is made anew.
  void make_anew();
  bool makes_anew() const { return makes_anew_; }

 private:
  Group& group_;
  std::string directory_;
  Trust trust_;
  bool accepted_ = false;
  std::uint32_t lock_wait_ms_ = 0;
  bool locked_ = false;  // the same on all ranks
  std::vector<FileHandle> locks_;
  std::optional<Manifest> drained_;
  std::uint64_t incarnation_max_ = 0;
  bool makes_anew_ = false;
};

}  // namespace perdure
