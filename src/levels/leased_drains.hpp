// SPDX-License-Identifier: BSD-3-Clause
//
// Leased drains: the drains of a run, and its leases of them (lease.hpp). Rank 0 holds the leases;
// all ranks know their numbers, which whoever writes asks for (drain.hpp).
//
// A drain that can't be read or written, or is not mounted, is left out of this run with a
// sentence, unless it is needed: it may be the only level that has the version.
//
// The directory on which a file system is to be mounted looks like a drain that was never used. So
// each node keeps an empty file beside the pool, drained-X, where X is the checksum of the drain's
// place, since a run had a lease there: if a place that has such a note is not there, it is not
// mounted. Nodes that have no pool can't know: a drain that has to be made is reported.
//
// Threads: collective calls. Failure: on all ranks or on none.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.hpp"
#include "base/group.hpp"
#include "base/status.hpp"
#include "levels/census.hpp"
#include "levels/drain.hpp"
#include "levels/lease.hpp"
#include "levels/lineage.hpp"

namespace perdure {

// Of the file beside a pool that says that a run had a lease.
bool is_drain_note(std::string_view name);

struct LeasedDrain {
  DrainTarget target;
  std::string place;                       // LEVEL/POOL
  bool noted = false;                      // some node knows that a run had a lease; on all ranks
  bool usable = true;                      // the same on all ranks
  Status problem;                          // why it is not; of rank 0
  std::optional<LeaseRecord> newest = {};  // of others; of rank 0
  bool clear = false;                      // whose holder is gone; of rank 0
  std::uint64_t number = 0;                // of this run's lease
  std::unique_ptr<Lease> lease = nullptr;  // of rank 0
};

class LeasedDrains {
 public:
  LeasedDrains(Group& group, std::string directory, std::vector<DrainTarget> targets,
               std::chrono::milliseconds patience);

  // Who has them. Code::foreign if one belongs to another job.
  Status look(const std::string& job_name);
  // Step 1: all holders are gone, which may take the longest of their patiences to see. A holder
  // whose pool this rank's group has opened, as `own` says, is known to be gone.
  Status clear(const JobRecord* own);
  // Step 3, after clear(): of the lineage of `job`, whose ancestors are written before if they are
  // given; called again it writes other ones. `needed`: the drain without which nothing can be had.
  Status take(const JobRecord& job, const Ancestors* ancestors = nullptr,
              std::optional<std::size_t> needed = std::nullopt);
  Status take_for_now(const std::string& job_name);
  // Steps 1 and 3 of the pool that this run has opened, on whose nodes the drains are noted.
  Status take_for_pool(const JobRecord& job, Trust trust);
  void give_back(std::chrono::milliseconds patience);
  // [collective] What a drain that can be read says of it; none: it is a first one, or not known.
  Result<Ancestors> ancestors_of(const JobId& lineage);
  // [collective] take_census(), with the histories of what it found.
  Result<Census> census(Trust trust);
  bool any_usable() const;

  std::vector<LeasedDrain>& drains() { return drains_; }
  const std::vector<LeasedDrain>& drains() const { return drains_; }
  // On rank 0 why a drain can't be used, if there is such a one; success on the others.
  Status problem() const;
  // What is to be said of drains that are left out; of rank 0.
  std::vector<std::string> take_sentences() { return std::move(sentences_); }

 private:
  Status agree_on_usable(const Status& local);
  void leave_out(LeasedDrain& drain, const Status& why);
  Status find_notes();
  Status note_places(Trust trust);
  Result<std::optional<LeaseRecord>> look_at(const LeasedDrain& drain, const std::string& job_name);

  Group& group_;
  std::string directory_;
  std::vector<LeasedDrain> drains_;
  std::chrono::milliseconds patience_;
  bool taken_ = false;
  std::vector<std::string> sentences_;
};

}  // namespace perdure
