// SPDX-License-Identifier: BSD-3-Clause
//
// Pool drain: brings to a level what a pool holds that no process uses, on one node and without a
// message: after a job has ended, or was ended, on each of its nodes.
//
// A version is in the pool's ring or in image files. Those of this node's ranks go to the level as
// one node file; several nodes do so at a time without knowing of each other, and whichever finds
// that all ranks are there writes the manifest (manifest.hpp). Drained are the newest versions that
// all ranks of this node have, as many as the level keeps, but at least two: a crash may leave a
// version complete on some nodes only, and then the one before is what all have.
//
// What a restore abandoned is not drained: a ring's versions are those that its head was made from,
// and images are of those, or older.
//
// Threads: one. Failure: what concerns one version is said in its report, and the others are
// drained. Nothing in the pool is changed; its rank files are locked meanwhile.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/status.hpp"
#include "levels/level_file.hpp"

namespace perdure {

struct PoolDrainVersion {
  VersionId id;
  std::vector<std::uint32_t> ranks;  // of this node
  std::uint64_t bytes = 0;           // of the images that were not there yet
  bool written = false;              // these, now; or all were there
  bool complete = false;             // the level has it of all ranks
  std::uint32_t missing = 0;         // ranks that no node has drained yet
  std::string problem;               // why it is not there
};

struct PoolDrainReport {
  JobRecord job;
  std::string place;                       // LEVEL/POOL
  std::vector<PoolDrainVersion> versions;  // newest first
  std::vector<std::string> problems;       // that concern all
  bool stopped = false;                    // by `progress`
};

struct PoolDrainOptions {
  std::uint32_t keep = 2;  // complete versions that stay on the level
  Trust trust = Trust::own;
  // Called now and then with bytes written, of all; false ends the drain.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress;
};

// Code::not_found if the directory holds no pool, or `level` is not there; Code::busy names the
// process that uses the pool.
Result<PoolDrainReport> drain_pool(const std::string& directory, const std::string& level,
                                   const PoolDrainOptions& options);

// One version of one rank, whose file is in a pool's directory, as a node file of its own. The
// caller has the file locked. `job` is of the pool, and says the lineage.
Status drain_rank(const std::string& directory, const JobRecord& job, std::uint32_t rank,
                  VersionId id, const std::string& place, Trust trust);

}  // namespace perdure
