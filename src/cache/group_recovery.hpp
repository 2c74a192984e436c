// SPDX-License-Identifier: BSD-3-Clause
//
// Group recovery: what its processes do about a file that was cached before, when they open it
// together: the parts that were left behind go back to it, all of them or none. A file that is
// committed with a pool goes to the pool's version.
//
// Invariants
//   cache.R1  If the pool was brought back from images, these have the file, whole
//       (part_share.hpp): it is made of them, whatever it holds, and parts that are left behind are
//       removed. Until the pool's next version it can be done again: the pool's file and the images
//       say that it must.
//   cache.R2  Otherwise the parts that were left behind have what it takes. All write what is
//       theirs, durably; then none is in use any more; then they are removed, each step when all
//       nodes have done the one before. So a crash leaves all of them, or a file that lacks nothing
//       (part_facts.hpp, parts.F1).
//   cache.R3  A part of an older life is removed if a node has one of this life: the job went on
//       without it. If none has one, a user must say what is meant.
//   cache.R5  A file that somebody else changed since is left as it is, and so are the parts
//       (cache.P15): any node's record may be the newest, and what one can't tell another may. All
//       parts know that the file changes before any of them writes, and until all have.
//   cache.R4  A file that processes of this job have open is at the version already.
//   cache.R6  Where a node's part was lost (cache.N2 of part_note.hpp) and no images have the file,
//       it lacks what nobody has: a user must say that this is meant.
//
// Threads: collective calls. Failure: on all ranks or on none; what was left behind stays.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "base/group.hpp"
#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/part_directory.hpp"

namespace perdure {

// What this rank's image of the pool's version has of the file (part_share.hpp).
struct ImageOfFile {
  std::span<const std::byte> head;
  std::span<const std::byte> bytes;
};

struct GroupRecovery {
  bool leads = false;                 // the one rank of its node that looks after parts
  std::set<std::string> directories;  // in which this node may have parts
  std::string pool;                   // the pool's directory on this node; "": the file is in none
  // That the pool has recovered to, the same on all ranks. Of job 0: the file is in no pool.
  PoolVersion version;
  bool brought_back = false;         // it was made of an image on this rank
  std::optional<ImageOfFile> image;  // of this rank
};

// [collective] The file has the pool's version, durably, and no part is left behind.
Status recover_group_file(Group& group, const BackingFile& backing, const GroupRecovery& recovery);

}  // namespace perdure
