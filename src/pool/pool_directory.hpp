// SPDX-License-Identifier: BSD-3-Clause
//
// Pool directory: finds or makes the files of a pool and opens this rank's.
//
// A pool is a directory with the file "job" and a file "rank-NNNNN" for each rank. The ranks may
// share the directory or each node may have one of the same name.
//
// Invariants
//   pool.F1  "job" is written only when every rank's file exists, whole, with version 0. A
//       directory without it holds no pool, and rank files in it that hold no version are remains
//       of a creation that was cut short. A file that is not whole never has a rank's name: such
//       remains may lie beside files of a later life of the pool, and would be damage there.
//   pool.F2  To discard a pool, "job" is removed first.
//   pool.F3  A rank file is locked by the process that uses it; nobody discards or rewrites a
//       locked one.
//   pool.F4  The mode of a directory that was there is not changed. Directory and files belong to
//       this user or to root and nobody else may write to them, unless Trust::anyone was asked for.
//   pool.F5  The job record says in which directory the pool was made. In another one it is
//       refused, unless any job's pool was asked for: it may have been put in the place of this
//       job's.
//
// A pool gets another number of ranks by rank_change.hpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "base/files.hpp"
#include "base/group.hpp"
#include "base/status.hpp"
#include "pmem/delay_device.hpp"
#include "pmem/region.hpp"
#include "pool/file_recovery.hpp"
#include "pool/old_ranks.hpp"
#include "pool/pool.hpp"

namespace perdure {

struct OpenOptions {
  bool must_exist = false;  // Code::not_found instead of making a pool
  bool discard = false;     // throw away what is there
  // Tells names of other files of a pool, which are thrown away with it; as of remove_pool().
  std::function<bool(const std::string& name)> belongs;
  // Tells those of cached files, which are recovered before another number of ranks goes on, by
  // `recover_files`; null: there are none, and nobody who could.
  std::function<bool(const std::string& name)> of_cached_file;
  FileRecovery recover_files = nullptr;
  bool any_ranks = false;  // accept a pool that another number of ranks made (rank_change.hpp)
  bool any_job = false;    // accept a pool of another job's name, or made in another directory
  Trust trust = Trust::own;
  std::string job_name;
  std::string emulate;  // row of the device table; empty: none
  DelayMode delay = DelayMode::virtual_clock;
  std::uint32_t lock_wait_ms = 10000;  // for a process that still holds a rank's file
  std::uint32_t keep = 0;              // versions; 0: as the pool has it, or 1 if it is made
  Geometry geometry;                   // of a pool that is made, except the slots
  // Puts another device around that of the rank's file, for tests; null: none.
  std::function<std::unique_ptr<Device>(std::unique_ptr<Device> file)> around;
  PoolOptions pool;
};

// Collective over the group; see Pool::attach for what follows.
Result<std::unique_ptr<Pool>> open_pool(const std::string& directory, Group& group,
                                        const OpenOptions& options);
// The same of another number of ranks' version that levels have; the directory is there.
Result<std::unique_ptr<Pool>> open_pool_of(const std::string& directory, Group& group,
                                           const OpenOptions& options, OldVersion version);

}  // namespace perdure
