// SPDX-License-Identifier: BSD-3-Clause
//
// Drains: the levels that versions are drained to, and which version is on its way to them. The
// lowest rank of a node drains for all of it (drain.hpp).
//
// One version at a time is drained, the newest that is whole on all ranks then, so that its images
// can be kept (own_files.hpp, levels.K2). Which one follows from agreed words alone (levels.hpp,
// levels.K1): it is the same on all ranks, also where no thread drains.
//
// Threads: the pool's caller; a thread for each level that is drained to from here. Failure: kept,
// and never that of a commit.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/status.hpp"
#include "levels/drain.hpp"
#include "levels/leased_drains.hpp"
#include "levels/own_node.hpp"
#include "levels/settings.hpp"

namespace perdure {

class Drains {
 public:
  // That of the settings, and `more`. The node and the settings outlive it.
  Drains(const OwnNode& node, const LevelSettings& settings, std::vector<DrainTarget> more);

  bool any() const { return !drains_.empty(); }
  bool due(std::uint64_t version) const;
  // [collective] Who has them (LeasedDrains::look()).
  Status look(const std::string& job_name);
  LeasedDrains& leased() { return *leased_; }
  // [collective] Of this pool, whose files are locked. A drain that can't be used is not one.
  Status start(const JobRecord& job);
  // levels.K3. Local: versions newer than `held` of incarnations up to this one are given up.
  Status abandon(const JobRecord& job, VersionId held, std::uint64_t incarnation_max) const;

  // The newest version that all ranks have whole: drained as soon as nothing else is. To the levels
  // for which it is due, or to all.
  void add(VersionId id, bool to_all);
  // Of this node: the images of what is drained are no longer needed.
  bool have_ended() const;
  // So it is on all ranks.
  void note_ended();
  const std::optional<VersionId>& draining() const { return draining_; }
  // Drained now, or next.
  std::optional<VersionId> under_way() const;
  bool waits_for_another() const { return next_.has_value(); }

  // Local: whether something of what was started here has not arrived.
  bool have_work() const;
  // Of rank 0, which writes the manifests: the newest version that is in all directories.
  std::uint64_t arrived() const;
  // The patience is that of the settings, from `start_ns` on.
  Status wait(std::uint64_t start_ns);
  // Of a drain since this was asked last.
  Status new_failure();
  // What is to be drained next is, if the one before it ends in time.
  void start_last(std::uint64_t start_ns);
  void stop(std::uint64_t start_ns, std::uint64_t patience_ns);

 private:
  // The thread that drains is in the lowest rank of a node.
  struct Drain {
    DrainTarget target;
    std::unique_ptr<NodeDrain> node = nullptr;
    std::uint64_t started = 0;   // versions
    std::uint64_t reported = 0;  // failures
  };
  struct Next {
    VersionId id;
    bool to_all = false;
  };
  const LeasedDrain& lease_of(const Drain& drain) const;
  std::string place_of(const Drain& drain) const;
  void begin_next();

  const OwnNode& node_;
  const LevelSettings& settings_;
  std::vector<Drain> drains_;
  std::optional<LeasedDrains> leased_;
  std::optional<VersionId> draining_;
  std::optional<Next> next_;
};

}  // namespace perdure
