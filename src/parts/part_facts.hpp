// SPDX-License-Identifier: BSD-3-Clause
//
// Part facts: which version of its pool a part belongs to, and whether all parts of a file are
// there that are needed to go back to one.
//
// A version of a pool is known by number and incarnation: after a restart from an older version
// a number may be given again. A part knows the version with which it was made, and the incarnation
// of all that was committed since.
//
// Invariants
//   parts.F1  The parts of a file are in use (PartStateFormat::in_use) from before the program can
//       write to it until the cached file has all. They are made before the first of them is, and
//       removed after the last of them is no longer. So where one is in use, all are there, or
//       were lost.
//       Until then they are fresh, and the file has all by itself, also for an image of the
//       version that the life which made them took before its first commit.
//   parts.F2  A part in use that belongs to the version's line (is_of_line) and is not there with
//       what the version had makes the version incomplete. One of an older life was left on a node
//       that the job had not got meanwhile, and is of no interest.
//
// Threads: any. Failure: a part that can't be read counts as one that is not there.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "parts/part_format.hpp"

namespace perdure {

// What a pool has recovered to. Incarnations that are 0 are not known.
struct PoolVersion {
  std::uint64_t job[2] = {0, 0};
  std::uint64_t version = 0;
  std::uint64_t incarnation = 0;
  std::uint64_t next_incarnation = 0;   // of what will be committed
  std::uint64_t image_incarnation = 0;  // of the image that it was made of, and is at; 0: of none
};

struct PartFact {
  std::string path;  // of the cached file
  std::uint64_t instance[2] = {0, 0};
  std::uint32_t node = 0;
  std::uint32_t nodes = 1;
  std::uint64_t pool_version = 0;
  std::uint64_t pool_incarnation = 0;
  std::uint64_t next_incarnation = 0;
  std::uint64_t noted = 0;     // version + 1 after which its grains are kept; 0: none
  std::uint64_t prepared = 0;  // version
  bool in_use = false;
  bool fresh = false;  // not used yet
};
PartFact fact_of(const PartHeaderFormat& header, const PartStateFormat& state);

// Whether the part can go back to what it was at the version.
bool holds_version(const PartFact& part, const PoolVersion& version);
// Whether it was made with the version, or in the life of the job that committed it.
bool is_of_line(const PartFact& part, const PoolVersion& version);

// parts.F2. Why the files can't all go back to the version; "" if they can.
std::string missing_parts(const std::vector<PartFact>& parts, const PoolVersion& version);

// Whether a file of this name is a part, or belongs to one.
bool is_part_name(const std::string& name);
// Of the files that are committed with the pool `job`, in a directory.
std::vector<PartFact> find_group_parts(const Directory& directory, const std::uint64_t (&job)[2],
                                       Trust trust);

}  // namespace perdure
