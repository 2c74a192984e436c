// Level copy: a copy of a pool's newest version at a place that survives more than the pool does.
//
//   LEVEL/POOL/version-N/    the files of the pool, as they were when version N was committed
//   LEVEL/POOL/current       a link to the one that is whole
//
// POOL is the name of the pool's directory. A program restarts from a copy by opening
// LEVEL/POOL/current as its pool, or after it was copied back to where the pool was.
//
// Invariants
//   L1  `current` leads to a directory that holds the files of all ranks, durable: it is changed
//       by a rename, after all ranks have agreed that theirs are.
//   L2  The copy that it led to before is removed only after all ranks have changed it. So where
//       levels are directories of several nodes, a crash may leave `current` at N on one and at the
//       copy before on another: both have both, and the older one is whole.
//   L3  What a level holds of another job, or of a newer version, is never written to or removed:
//       the caller looks with newest_copy() first. Numbers of versions are never given twice, so a
//       job that finds a newer one lost its pool, or has an older copy of it.
//
// Threads: as the pool. Failure: as agree(); what was there stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/group.hpp"
#include "base/io_token.hpp"
#include "base/status.hpp"

namespace perdure {

struct LevelFiles {
  std::string pool;        // the directory
  std::string rank_file;   // this rank's, in it
  std::string job_record;  // the bytes of the copy's
};

// What `current` leads to.
struct LevelCopy {
  std::string path;
  std::uint64_t version = 0;
};
Result<std::optional<LevelCopy>> newest_copy(const std::string& level, const std::string& pool);

// Collective; nothing stores to the files meanwhile. `ready` is why this rank can't take part (L3).
Status copy_to_level(Group& group, const LevelFiles& files, const std::string& level,
                     std::uint64_t version, const Status& ready, IoToken* token);

}  // namespace perdure
