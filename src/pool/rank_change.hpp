// SPDX-License-Identifier: BSD-3-Clause
//
// Rank change: a pool that N ranks made goes on with M ranks.
//
// When it is opened each new rank makes a file beside the old ones, rank-NNNNN.next, and the
// restart brings the old version R into these, under its number (redistribution.hpp). The first
// commit, R + 1, makes them the pool. Until then the program can read what it wants of the old
// files, and whatever happens, the pool is what it was.
//
//   1  old rank files locked, all of them; remains of earlier attempts removed
//   2  rank-NNNNN.next made by each new rank, of a generation that no old file has; names durable
//   3  R in the new files, whole and durable on all ranks       (in the restart)
//   4  R + 1 in the new files, whole and durable on all ranks   (in the first commit)
//   5  "job" replaced: M ranks, the new generation              <- and this makes them the pool
//   6  rank-NNNNN.next becomes rank-NNNNN; old files that are left go; the commit returns
//
// Invariants
//   pool.R1  Before 5 nothing of the old pool is stored to, renamed or removed, and its files are
//       locked from before R is chosen until after 6. So a crash before 5 leaves the old pool at R,
//       whichever number of ranks starts next, and no two jobs can both be between 1 and 6: one of
//       them has no lock. The record is read again after the locks are taken, as another job may
//       have got to 6 while they were waited for.
//   pool.R2  Step 5 is one rename, by rank 0, after all ranks have agreed that 4 is done. A rank's
//       file is the pool's if it has the record's number of ranks, and the record's generation or a
//       later one (a file that was moved to another node has a later one). The new generation is
//       above that of every old file, so after 5 no old file is the pool's, and before 5 no new
//       one is: they have another number of ranks than the record.
//   pool.R3  After 5 the files of the pool may still have their names of 2. Whoever opens the pool,
//       or looks into it, takes such a file for the rank's, and who opens it finishes 6 first,
//       under its lock. What is no rank's then are remains, which go when all rank files are
//       locked.
//   pool.R4  The first commit returns after 6, so that what it acknowledged is what a restart
//       finds. If the ranks do not learn that 5 was done, the pool must be opened again: it is the
//       old one with R, or the new one with R + 1, and both are whole.
//   pool.R5  Arrays that the program reads by hand are not in the new R, which therefore is never
//       the newest version of a pool: it is deleted before 5, if there is such an array. Nor is the
//       version before R in the new files, which holds nothing: it is deleted after 3.
//   pool.R6  A rank that leaves before 5 removes its new file only if it has not said in 4 that it
//       has it.
//   pool.R7  Where the pool's directory is another one on each node, 5 is a rename in each of them,
//       after the same agreement. So a record of the new generation, on whatever node, says that
//       the new files of all ranks are whole: a start that finds one gives it to the nodes that
//       have an older one (levels/other_ranks.hpp), and does 6. If the node that had it is lost
//       before, R is there as it was: what it was read from stays, and no commit had returned.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/group.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pmem/region.hpp"
#include "pool/job_record.hpp"
#include "pool/old_ranks.hpp"
#include "pool/rank_rule.hpp"

namespace perdure {

class RankChange {
 public:
  // [collective] 2, after 1. The caller opens the pool on take_device().
  static Result<std::unique_ptr<RankChange>> begin(std::unique_ptr<OldRanks> old, Group& group,
                                                   const OpenOptions& options);
  ~RankChange();
  RankChange(const RankChange&) = delete;
  RankChange& operator=(const RankChange&) = delete;

  std::unique_ptr<Device> take_device() { return std::move(device_); }
  const Region& region() const { return region_; }
  // Of this rank's file until 6.
  std::string file_name() const;

  const OldRanks& old() const { return *old_; }
  // What the program says of an array that it has opened.
  void say(const std::string& array, RankRule rule) { said_[array] = rule; }
  RankRule said_of(const std::string& array) const;
  bool any_by_hand() const;

  // [collective] 5 and 6, when the first commit is done on all ranks.
  Status finish();

 private:
  RankChange(Group& group, std::unique_ptr<OldRanks> old) : group_(group), old_(std::move(old)) {}
  Status make_file(const OpenOptions& options);
  Status check_all_files() const;
  Status take_names();

  Group& group_;
  std::unique_ptr<OldRanks> old_;
  JobRecord job_;  // of the new pool
  std::unique_ptr<Device> device_;
  Region region_;
  std::map<std::string, RankRule> said_;
  bool made_ = false;  // the file, and nobody counts on it yet
};

}  // namespace perdure
