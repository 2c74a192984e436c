// SPDX-License-Identifier: BSD-3-Clause
//
// Own files: a rank's images and guards beside its pool, and which of them the next version may
// take.
//
// Invariants
//   levels.K2  The version that was last whole on all ranks keeps one image and one guard on every
//       rank until a newer one is whole on all ranks, which 3 of some commit says. So does one that
//       is being drained. Hence three files of each kind: one is always free. While a version that
//       was brought back gets its redundancy, what it was brought back from stays, and what can
//       bear more losses than that.
//
// Threads: one at a time. Failure: a Status with the path.
#pragma once

#include <cstdint>
#include <vector>

#include "base/status.hpp"
#include "levels/level_file.hpp"
#include "levels/own_node.hpp"

namespace perdure {

class OwnFiles {
 public:
  explicit OwnFiles(const OwnNode& node) : node_(node) {}

  // Local. Those of the pool on this node, which belongs to this lineage.
  Status open(const JobId& lineage);
  void close();
  // As the files name it.
  const JobRecord& job() const { return job_; }

  // Versions of which this rank has its image and, of these members if there are any, a guard.
  std::vector<VersionId> whole(const std::vector<std::uint32_t>& members) const;
  // Null: there is none.
  const LevelFile* image_of(VersionId id) const;
  // levels.K2. Another file that holds a needed version as well is not needed.
  LevelFile* free_image(const std::vector<VersionId>& needed) { return free(images_, needed); }
  LevelFile* free_guard(const std::vector<VersionId>& needed) { return free(guards_, needed); }

  // Local, durably, of versions above `held`: this rank's, and, by the lowest rank of the node,
  // what is there of ranks that are elsewhere, and of all as long as they have not opened theirs.
  Status give_up_newer(const JobId& job, std::uint64_t held);
  // Local (other_ranks.hpp). Images and guards on this node of other numbers of ranks:
  // the pool has gone on without them. Of several nodes with one directory whichever comes first
  // removes them.
  Status remove_of_others(const JobId& job) const;

 private:
  static LevelFile* free(std::vector<LevelFile>& files, std::vector<VersionId> needed);

  const OwnNode& node_;
  JobRecord job_;
  std::vector<LevelFile> images_;
  std::vector<LevelFile> guards_;
};

}  // namespace perdure
