// Level: a place that holds copies of a pool's versions and survives more than the pool does.
//
// directory_level.hpp is one, in a directory of any file system. A copy in the memory or on the
// disk of another node would be partner_level.hpp beside it: rank r sends its rank file to its
// partner and receives the partner's (Group::send, receive, after split() by node), and fetch()
// sends it back. Levels are made from a plan in capi/pool_energy.cpp; nothing else knows which
// kinds there are.
//
// Invariants
//   L1  A version that newest() names is whole on all ranks, durable as far as the level is.
//   L2  The version that a level held before goes only after all ranks hold the new one. So a crash
//       may leave some ranks at the one and others at the other: all have the older one.
//   L3  What a level holds of another job, or of a version that is not older, is neither written to
//       nor removed: check_free() refuses. Numbers of versions are never given twice, so a job that
//       finds a newer one lost its pool, or has an older copy of it.
//
// Threads: as the pool. Failure: as agree(); what the level held stays.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.hpp"
#include "pool/job_record.hpp"
#include "pool/pool.hpp"

namespace perdure {

// The pool whose versions a level keeps.
struct KeptPool {
  std::string directory;
  std::string rank_file;  // this rank's, in it
  JobRecord job;
};
Result<KeptPool> kept_pool(Pool& pool);

// A version that a level holds, and whose it is.
struct LevelVersion {
  std::string place;  // for sentences, and for users who fetch it by hand
  std::uint64_t version = 0;
  JobRecord job;
};

class Level {
 public:
  Level() = default;
  virtual ~Level() = default;
  Level(const Level&) = delete;
  Level& operator=(const Level&) = delete;

  // [collective] Keeps the pool's newest version, in place of the one before. Nothing stores to the
  // pool's files meanwhile.
  virtual Status keep(const KeptPool& pool, std::uint64_t version) = 0;
  // [collective] Makes `directory`, which holds no pool, one that holds `version`: the newest, or
  // the one before while some rank has that (L2).
  virtual Status fetch(std::uint64_t version, const std::string& directory) = 0;
  // What this rank's part of the level holds. Local.
  virtual Result<std::optional<LevelVersion>> newest() const = 0;

  // L3: Code::foreign if `version` must not take the place of what the level holds. Local.
  Status check_free(const KeptPool& pool, std::uint64_t version) const;
};

}  // namespace perdure
