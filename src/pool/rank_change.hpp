// SPDX-License-Identifier: BSD-3-Clause
//
// Rank change: a pool that N ranks made goes on with M ranks.
//
// When it is opened each new rank makes a file beside the old ones, rank-NNNNN.next, and the
// restart brings the old version R into the arrays, and, where more than one version is kept, into
// these files under its number (redistribution.hpp). The first commit, R + 1, makes them the pool.
// Until then the program can read what it wants of the old files, and whatever happens, the pool is
// what it was.
//
//   1  old rank files locked, all of them; remains of earlier attempts removed
//   2  rank-NNNNN.next made by each new rank, of a generation that no old file has; names durable
//   3  R in memory, and, where more than one version is kept, in the new files, whole and durable
//      on all ranks                                             (in the restart)
//   4  R + 1 in the new files, whole and durable on all ranks   (in the first commit)
//   5  "job" replaced: M ranks, the new generation              <- and this makes them the pool
//   6  rank-NNNNN.next becomes rank-NNNNN; old files that are left go; the commit returns
//
// Invariants
//   pool.R1  Before 5 nothing of the old pool is stored to, renamed or removed, and its files are
//       locked from before R is chosen until after 6. So a crash before 5 leaves the old pool at R,
//       whichever number of ranks starts next, and no two jobs can both be between 1 and 6: one of
//       them has no lock. The record is read again after the locks are taken, as another job may
//       have got to 6 while they were waited for, or to 5, and was killed there. Then what is
//       locked is not the pool's, though it may have had its name, and the pool is to be opened
//       again, which settles the names first.
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
//   pool.R5  What is called R in the new files may lack something: arrays that the program reads by
//       hand, those that are taken over one by one (take_late()), objects of in-place versioning,
//       whose contents are in the program's memory until R + 1, and, if one version is kept,
//       everything. It is therefore never the newest version of a pool, nor one that is kept: its
//       slot is that of R + 2, which is open, durably, on all ranks before 5, or it is deleted
//       before 5. Nor is the version before R in the new files, which holds nothing: it is deleted
//       after 3. So nothing of R need be durable in the new files where one version is kept: they
//       are no pool before 5, and after 5 R + 1 is what they have.
//   pool.R6  A rank that leaves before 5 removes its new file only if it has not said in 4 that it
//       has it.
//   pool.R7  Where the pool's directory is another one on each node, 5 is a rename in each of them,
//       after the same agreement. So a record of the new generation, on whatever node, says that
//       the new files of all ranks are whole: a start that finds one gives it to the nodes that
//       have an older one (levels/other_ranks.hpp), and does 6. If the node that had it is lost
//       before, R is there as it was: what it was read from stays, and no commit had returned.
//   pool.R8  No commit is R + 1 unless every old array was taken over, by a rule or by hand: what
//       is taken late and has not come yet, or was closed again, makes it an error.
//   pool.R9  Files that were committed with the pool get what they had at R before 2, and belong to
//       it no more (file_recovery.hpp). A crash in the middle of that leaves a part that goes back
//       to R, or a file that is at R; both are what the old pool has at R. Those that join the new
//       pool before 4 join R, which has the incarnation of the old R: until 5 they go back to it
//       with the old pool. So they learn of R + 1 after 5, as they forget R then, and have prepared
//       it before, as of any version.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
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
  // R lacks an array in the new files: its writer has its contents.
  void note_lacking() { lacks_ = true; }
  RankRule said_of(const std::string& array) const;
  // The new files have all of R, and as one of the versions that they keep.
  bool keeps_version() const { return old_->geometry().slots > 2; }
  bool lacks_arrays() const;

  // Arrays are taken over one by one after the restart, where they are opened on all ranks.
  void take_late() { late_ = true; }
  bool takes_late() const { return late_; }
  // Of an array of the old version: it was taken over, or `gone`: it is not open any more.
  void note_taken(const std::string& array) { taken_.insert(array); }
  void note_gone(const std::string& array) { taken_.erase(array); }
  // pool.R8.
  Status check_all_taken() const;

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
  std::set<std::string> taken_;
  bool late_ = false;
  bool lacks_ = false;
  bool made_ = false;  // the file, and nobody counts on it yet
};

}  // namespace perdure
