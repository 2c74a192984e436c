// Pool: the arrays and scalars of one rank, and their versions, on one device.
//
// Life: attach, open arrays and bind scalars, restart, then commits. The functions marked
// [collective] are called by all ranks of the group in the same order; if one rank fails, all do.
//
// Threads: one at a time. Failure: a pool whose commit ended in CommitOutcome::unknown, or whose
// device failed, refuses everything but destruction.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/group.hpp"
#include "base/status.hpp"
#include "object/background_saver.hpp"
#include "object/catalogue.hpp"
#include "object/commit.hpp"
#include "object/recover.hpp"
#include "object/run_page.hpp"
#include "object/slots.hpp"
#include "object/versioned_array.hpp"
#include "pmem/device.hpp"
#include "pmem/parallel.hpp"
#include "pmem/region.hpp"

namespace perdure {

struct PoolOptions {
  bool allow_older = false;   // accept an older version where the newest is damaged
  unsigned copy_threads = 1;  // that copy and flush
};

struct PoolStatus {
  std::uint64_t version = 0;
  std::uint64_t commits = 0;
  std::uint64_t commit_ns = 0;
  std::uint64_t commit_ns_last = 0;
  std::uint64_t committed_bytes = 0;
  std::uint64_t restart_ns = 0;
  std::uint64_t model_ns = 0;
  bool survives_power_failure = false;
  bool fell_back = false;
};

// Makes version 0, which holds nothing, on a device that format_region() prepared.
Status format_slots(Device& device, const Region& region);

class Pool {
 public:
  // [collective] Chooses the version to restore; writes nothing. The group outlives the pool.
  static Result<std::unique_ptr<Pool>> attach(std::unique_ptr<Device> device, const Region& region,
                                              Group& group, const PoolOptions& options);
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  // [collective] Finds or makes an array. Owned by the pool.
  Result<VersionedArray*> open_array(const std::string& name, const ArrayShape& shape,
                                     const ArrayOptions& options);
  // Ties memory to a scalar.
  Status bind_scalar(const std::string& name, void* address, std::size_t bytes);

  // [collective] Loads the chosen version; returns its number, 0 for a new pool.
  Result<std::uint64_t> restart();

  // [collective] Returns the new version's number.
  Result<std::uint64_t> commit();

  Status commit_begin();
  Status before_write(const VersionedArray& array);
  // [collective]
  Result<std::uint64_t> commit_wait();

  bool restarted() const { return restarted_; }
  bool commit_pending() const { return pending_; }
  PoolStatus status() const;

 private:
  struct BoundScalar {
    void* address;
    std::size_t entry;  // in next_.scalars
  };

  Pool(std::unique_ptr<Device> device, const Region& region, Group& group,
       const PoolOptions& options);

  Status check_usable() const;
  Status check_committable() const;
  Result<ArrayEntry> plan_array(const std::string& name, const ArrayShape& shape);
  Result<VersionedArray*> add_array(const ArrayEntry& entry, const ArrayOptions& options);
  Status load_all();
  Status load_array(std::size_t index);
  Status prepare_version();
  void save_scalars();
  Status save_arrays(std::uint64_t& bytes);
  Status refuse_commit(const Status& state);
  Result<std::uint64_t> finish_commit(const Status& data, std::uint64_t bytes);
  std::uint64_t iteration() const;

  std::unique_ptr<Device> device_;
  Region region_;
  Group& group_;
  PoolOptions options_;
  ParallelWriter writer_;
  Slots slots_;
  RunPage run_page_;
  Recovered recovered_;
  Catalogue next_;  // the version to come: restored entries, then those opened since
  std::vector<std::unique_ptr<VersionedArray>> arrays_;
  std::vector<VersionedArray*> array_list_;  // the same, as the background saver takes them
  std::vector<std::size_t> array_entry_;     // index in next_.arrays of arrays_[i]
  std::vector<BoundScalar> scalars_;
  bool restarted_ = false;
  bool pending_ = false;         // commit_begin() without commit_wait()
  Status begun_;                 // outcome of the last commit_begin() on this rank
  bool successor_open_ = false;  // the slot of next_.version is OPEN, durably
  Status broken_;
  std::uint64_t blocked_ns_ = 0;  // by the commit under way
  PoolStatus status_;
  std::unique_ptr<BackgroundSaver> saver_;  // last: its thread uses the members above
};

}  // namespace perdure
