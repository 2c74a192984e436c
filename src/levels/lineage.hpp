// SPDX-License-Identifier: BSD-3-Clause
//
// Lineage: which of a job's histories a pool, an image or a drained version belongs to.
//
// A pool that is made empty begins the first lineage of its job. A pool that is made of a drained
// version begins a new one, with that version as its origin: nobody can tell then whether the
// nodes of before will come back, with versions that were never drained. So does one that is made
// of images on nodes, where there is a drain: the nodes that are away may make one, too, of what
// they guard. Nothing else begins one: a pool that goes on on its nodes stays in its lineage. So
// does one without a drain, where nothing could say what a lineage was made from. Two halves of a
// job that go on so, each without the other, are in one lineage. They can't know of each other, and
// each has what it acknowledged. A start on nodes of both never mixes them, as no version of theirs
// has the incarnation of another one (bring_back.hpp, levels.B1): recovery refuses their files, and
// the images of the one count of which something was made last, which is reported. What the other
// one has is lost then as with its nodes.
//
// Invariants
//   levels.Y1  Where there is a drain, versions of a lineage are made by one run at a time: its
//       files on the nodes are locked, or have lost their names (pool_directory.hpp, pool.F3;
//       commit.cpp, pool.I9), when another takes them. Before anything is made of a drained version
//       or of images, or a pool is made anew, every run that holds a lease of a drain is gone, and
//       this run has it (lease.hpp, 1 to 3).
//   levels.Y2  A lineage's history is its own versions, and of each ancestor those up to the one
//       that the next lineage was made from. What an ancestor's run makes later is no part of it.
//       `origin` says so, durably before a lease or a version names the lineage.
//
// Threads: any. Failure: a Status with the path.
#pragma once

#include <string>
#include <vector>

#include "base/status.hpp"
#include "levels/level_directory.hpp"
#include "levels/level_file.hpp"

namespace perdure {

struct Ancestor {
  JobId lineage;
  VersionId until;  // the last of its versions that counts
  bool operator==(const Ancestor&) const = default;
};
using Ancestors = std::vector<Ancestor>;  // oldest first

// LEVEL/POOL, the place, and what is `below` it, made where it is missing; but not what is
// above the level's directory.
Result<LevelDirectory> make_in_place(const std::string& place, const std::string& below);
// LEVEL/POOL/LINEAGE.
std::string lineage_path(const std::string& place, const JobId& lineage);
// None: it is a job's first lineage, or the place does not know it.
Result<Ancestors> read_ancestors(const std::string& place, const JobId& lineage);
// Durably, and the directory of the lineage with it.
Status write_ancestors(const std::string& place, const JobRecord& job, const Ancestors& ancestors);
constexpr const char* origin_name = "origin";

// How a lineage and what nodes have of another one stand to each other.
enum class Kinship {
  same,
  continuation,  // it was made from what the nodes have, or from a later version
  fork,          // it was made from an earlier version than the nodes have
  none,          // neither, as far as the place knows
};
// Of the lineage with these ancestors, beside `held` of `lineage`.
Kinship kinship_of(const JobId& other, const Ancestors& ancestors, const JobId& lineage,
                   VersionId held);

}  // namespace perdure
