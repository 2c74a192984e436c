// SPDX-License-Identifier: BSD-3-Clause
//
// Census: which files of a job are on which node, as every rank knows it after all have looked.
//
// A rank's place is not its identity: its files are found by job, rank and age on whatever node
// they are, whether that node has the job's record or not. The lowest rank of each node lists that
// node's directory and speaks for it.
//
// Threads: collective calls. Failure: on all ranks or on none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/level_file.hpp"
#include "levels/lineage.hpp"
#include "levels/redundancy.hpp"
#include "parts/part_facts.hpp"
#include "pool/job_record.hpp"

namespace perdure {

// A rank's file of the pool.
struct PoolFileFact {
  std::uint32_t rank = 0;
  JobId job;
  std::uint64_t generation = 0;
  VersionId head;         // that a restart would go on from, as this file says
  std::uint32_t at = 0;   // a rank of the node that has it
  bool of_image = false;  // files that are committed with the pool are in the rank's image
  JobId lineage = {};
  std::uint32_t ranks = 0;  // of the pool that it belongs to
  bool restored = false;    // it went back to its head, and has not committed since
  // Of the start of the job that last made it, or committed to it (bring_back.hpp, levels.B1).
  std::uint64_t age() const { return std::max(generation, head.incarnation); }
};
struct LevelFileFact {
  LevelFileName name;
  JobId job;
  VersionId id;
  std::uint64_t payload_bytes = 0;
  std::uint32_t at = 0;
  GuardContents guard = {};  // of a guard
  JobId lineage = {};
  std::uint32_t ranks = 0;  // of the job that made it
};

// Of a cached file that is committed with the pool.
struct PartFileFact {
  PartFact part;
  std::uint32_t at = 0;
};

// A rank's file of the pool that is there, and damaged: its header, or what says its versions. It
// is no PoolFileFact if nothing of it can be believed.
struct DamagedFileFact {
  std::uint32_t rank = 0;
  std::string problem;  // for people, with the path
  std::uint32_t at = 0;
};

// Which lineages one was made from, as a drain says.
struct History {
  JobId lineage;
  Ancestors ancestors;
};

struct Census {
  std::vector<std::uint32_t> nodes;   // of each rank
  std::vector<std::string> hosts;     // of each rank's node
  JobRecord job;                      // of the pool; without a place
  std::vector<PoolFileFact> files;    // of this job
  std::vector<LevelFileFact> levels;  // whole ones, of this job
  std::vector<PartFileFact> parts;    // of this job
  std::vector<DamagedFileFact> damaged;
  std::vector<History> histories;  // of lineages that are here, where that is known

  // Both on the same node. The pool may have ranks that the job has not.
  bool near(std::uint32_t rank, std::uint32_t other) const {
    return rank < nodes.size() && other < nodes.size() && nodes[rank] == nodes[other];
  }
  // By rank the file that was in use last, of lineage(), as no pool has files of two; null: none is
  // there. Others of a rank are what it left behind when it moved, or when others went on without
  // it.
  std::vector<const PoolFileFact*> files_in_use() const;
  // Of what was made last of all that is here.
  JobId lineage() const;
  // All lineages of which something is here.
  std::vector<JobId> lineages() const;
  // What is left when these nodes are lost.
  Census without(const std::set<std::uint32_t>& lost) const;
  // Of the nodes for which `there` holds, as missing_parts() takes them.
  template <typename There>
  std::vector<PartFact> parts_where(const There& there) const {
    std::vector<PartFact> found;
    for (const PartFileFact& fact : parts) {
      if (there(fact.at)) found.push_back(fact.part);
    }
    return found;
  }
};

// The highest age() of the job's files in a node's directory. Local.
std::uint64_t youngest_age(const Directory& directory, const JobId& job, Trust trust);

// [collective] Bytes of all ranks, in order of ranks.
Result<std::vector<std::vector<std::byte>>> gather_everywhere(Group& group,
                                                              std::span<const std::byte> own);

// The same without a job: each of the directories is the pool's on one node, in whose place `at`
// counts. Files of before the pool got another number of ranks do not count. Local.
Result<Census> census_of(const std::vector<std::string>& directories, Trust trust);

// [collective] Looks at the pool `directory` on every node. Code::not_found if no node has a job
// record there, Code::foreign if nodes have those of different jobs.
Result<Census> take_census(Group& group, const std::string& directory, Trust trust);

}  // namespace perdure
