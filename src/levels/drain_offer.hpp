// SPDX-License-Identifier: BSD-3-Clause
//
// Drain offer: which drained versions count beside what the nodes of a job hold (restart.hpp,
// levels.A6).
//
// Threads: any. Failure: a Status with the path.
#pragma once

#include <optional>
#include <string>

#include "levels/lease.hpp"
#include "levels/manifest.hpp"

namespace perdure {

// The newest version that nodes can give all ranks; version 0: they have the job, and none.
struct NodesHold {
  JobId job;
  JobId lineage;
  VersionId id;
};

struct DrainOffer {
  FoundVersions versions;  // that count
  JobId lineage;           // in whose history they are
  // The newest version of the lineage of the newest lease, if it does not count because the nodes
  // have versions beyond the one that it was made from. That one, if it has drained none.
  std::optional<VersionId> fork;
  JobId fork_lineage;
  VersionId forked_from;
};

// Of `place`, whose newest lease is given. Without `held` no node knows of the job.
Result<DrainOffer> offer_of(const std::string& place, const std::optional<LeaseRecord>& newest,
                            const std::optional<NodesHold>& held);

}  // namespace perdure
