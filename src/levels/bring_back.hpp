// SPDX-License-Identifier: BSD-3-Clause
//
// Bring back: puts every rank's file of the pool where the rank is now, before the pool is opened.
//
// Nothing is removed, and nothing of what is there is stored to, until every rank has a new file
// that is whole; so a crash or another loss in here leaves all choices that there were, less what
// was newly lost.
//
// Invariants
//   levels.B1  A file that is moved or made from an image gets a generation that is higher than
//       that of any file of the job that was seen, and not below the time of day in ms, to which a
//       random number of 20 bits is added; the incarnation of what is committed later is such a
//       number, too. So a file on a node that comes back later, or that a rank left when it moved,
//       is never taken for it (Census::files_in_use). Two halves of a job that go on without each
//       other don't give one number to two versions, though clocks went back, so that their ranks
//       are not mixed when they meet.
//   levels.B2  Files made from images take the place of those that are there only when all ranks
//       have theirs, durable. A crash while they do leaves some ranks with the version R alone,
//       others with the pool as it was. Recovery of such a pool either chooses R, where the others
//       hold it as the version before an unfinished one, or is refused (recover.cpp, pool.C4 and
//       "not all have it"), and then R is brought back again: its images stand. A start that is
//       refused has deleted nothing.
//   levels.B4  A rank's file that is copied or replaced is locked meanwhile, so no living process
//       uses it: two runs never go on from one file, and nobody's file loses its name while it is
//       stored to. Images that are sent need no lock: what arrives is compared with their
//       checksums.
//
// Threads: collective calls, in the order of a plan that all ranks make alike of one census
// (recovery_plan.hpp). Failure: on all ranks or on none.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/census.hpp"
#include "levels/manifest.hpp"
#include "levels/recovery_plan.hpp"
#include "pool/pool_directory.hpp"

namespace perdure {

class BringBack {
 public:
  BringBack(Group& group, std::string directory, Trust trust)
      : group_(group), directory_(std::move(directory)), trust_(trust) {}

  // How long a process that uses a file that is to be moved or replaced is waited for (levels.B4).
  void wait_for_locks(std::uint32_t ms) { lock_wait_ms_ = ms; }
  // This rank's file of the pool is damaged: it stays as rank-NNNNN.damaged when another one takes
  // its place.
  void keep_damaged(bool keep) { keep_damaged_ = keep; }

  // The random part of generations, the same on all ranks (levels.B1).
  static constexpr unsigned chance_bits = 20;
  void number_with(std::uint64_t chance) { chance_ = chance; }

  // Whether any node has the pool.
  Result<bool> exists() const;
  // Makes the pool's directory on this node, if it is not there. Local.
  Status make_directory() const;
  // Moves the newest file of each rank to the rank's node, and writes the job's record where a node
  // lacks it. Says what was moved; empty: nothing had to be. Code::not_found if some rank's is on
  // no node: use_images() is next.
  Result<std::string> move_files(const Census& census) const;
  // Reads an image or guard of this node. Local.
  Status check(const LevelFileFact& fact) const;
  // Every rank gets the newest version that all can have, from its image, another node's, or by
  // computing it from guards. Says what was done. Code::not_found names what there is if no
  // version can be had. The pool is of `lineage` then, the images are of theirs.
  Result<std::string> use_images(const Census& census, const JobId& lineage);
  // Every rank gets its image of a version that was drained, in the lineage that the manifest's job
  // says. `incarnation_max` is the highest that the place knows.
  // `here` is the record of the nodes, without ranks if they have none.
  Result<std::string> use_drained(const Manifest& manifest, std::uint64_t incarnation_max,
                                  const JobRecord& here);
  // [collective] The images of a plan for a pool of whatever number of ranks: those that are lost
  // are rebuilt. Where they are then, by the pool's rank, as RecoveryPlan::image_at.
  Result<std::vector<std::uint32_t>> rebuild_lost(const Census& census, const RecoveryPlan& plan);
  // As use_drained(), where the images of `id` are on each rank's node already.
  Status use_own_images(const JobRecord& job, VersionId id, std::uint64_t generation);
  // levels.B1: of a file that is made, or of the next incarnation. Collective.
  Result<std::uint64_t> new_generation(const Census& census, std::uint64_t above = 0) const;
  // [collective] Of a pool that was made of images which have what is committed with it
  // (Pool::of_image): those of one id that all ranks have. Code::not_found if there are none.
  Result<VersionId> image_behind(const Pool& pool);
  // This rank's image of the version, whose data were read; Code::not_found, damaged.
  Result<LevelFile> own_image(VersionId id) const { return image_of(group_.rank(), id); }
  // The same of any rank of the pool.
  Result<LevelFile> image_of(std::uint32_t rank, VersionId id) const;
  // A file for a rank's image of the version: one without contents, or else the oldest.
  Result<LevelFile> free_image(VersionId id) const { return free_image(group_.rank(), id); }
  Result<LevelFile> free_image(std::uint32_t rank, VersionId id) const;

 private:
  std::vector<VersionId> images_like(const Pool& pool) const;
  Result<FileHandle> lock(std::uint32_t rank) const;
  Status send_file(std::uint32_t to) const;
  Status receive_file(std::uint32_t from, std::uint64_t generation) const;
  Status note_job_here(const JobRecord& job) const;
  Status move_image(const JobRecord& job, std::uint32_t from, std::uint32_t rank, VersionId id);
  // This rank's part of a rebuild: what it reads, and what it makes.
  struct Prepared {
    std::uint32_t rank = 0;  // of the pool, whose image it is
    std::vector<std::unique_ptr<LevelFile>> open;
    std::vector<HeldFile> held;
    std::unique_ptr<LevelFile> image;
    std::uint64_t image_bytes = 0;
  };
  Result<Prepared> prepare(const Census& census, const GroupRebuild& rebuild, VersionId id,
                           const std::vector<std::uint32_t>& rebuilders) const;
  Status rebuild(const Census& census, const GroupRebuild& rebuild, const JobRecord& job,
                 VersionId id, const std::vector<std::uint32_t>& rebuilders);
  Status take_places(const JobRecord& job) const;

  Group& group_;
  std::string directory_;
  Trust trust_;
  bool keep_damaged_ = false;
  std::uint64_t chance_ = 0;
  std::uint32_t lock_wait_ms_ = 10'000;
};

}  // namespace perdure
