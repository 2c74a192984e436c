// SPDX-License-Identifier: BSD-3-Clause
//
// Drain offer: which drained versions count beside what the nodes of a job hold (choice.hpp,
// levels.A6).
//
// Threads: any.
#pragma once

#include <optional>
#include <string>

#include "levels/lease.hpp"
#include "levels/manifest.hpp"

namespace perdure {

// Versions of a lineage's history, newest first, and what it was made from.
struct DrainHolds {
  std::string place;
  std::optional<LeaseRecord> newest;  // lease of others
  FoundVersions own;                  // of the lineage that the nodes are in
  FoundVersions of_newest;            // of that of the newest lease
  bool any = false;  // some lineage has drained a version there; looked for where no node knows
};

// That nodes are in.
struct JobLineage {
  JobId job;
  JobId lineage;
};

// What is in `place`, beside these nodes; none: no node knows of the job. Failure: a Status with
// the path.
Result<DrainHolds> look_into_drain(const std::string& place,
                                   const std::optional<LeaseRecord>& newest,
                                   const std::optional<JobLineage>& nodes);

struct DrainOffer {
  FoundVersions versions;  // that count
  JobId lineage;           // in whose history they are
  // The newest version of the lineage of the newest lease, if it does not count because the nodes
  // have versions beyond the one that it was made from. That one, if it has drained none.
  std::optional<VersionId> fork;
  JobId fork_lineage;
  VersionId forked_from;
};

// Beside nodes that can give all ranks `held`; version 0: they have the job, and none. Pure.
// Code::not_found if the run that had the drain last went on from a version that is gone.
Result<DrainOffer> offer_of(const DrainHolds& drain, const std::optional<JobLineage>& nodes,
                            VersionId held);

}  // namespace perdure
