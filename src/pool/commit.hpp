// SPDX-License-Identifier: BSD-3-Clause
//
// Commit: makes a version exist on all ranks of a group, or on none.
//
// Invariants and the argument for them are at the top of commit.cpp.
#pragma once

#include <span>

#include "base/agreement.hpp"
#include "base/group.hpp"
#include "base/status.hpp"
#include "pmem/device.hpp"
#include "pool/catalogue.hpp"
#include "pool/run_page.hpp"
#include "pool/slots.hpp"

namespace perdure {

struct CommitParties {
  Device& device;
  Slots& slots;
  CataloguePages& pages;
  Group& group;
  const RunPage& run_page;
  std::uint64_t iteration = no_iteration;  // only for a rehearsed failure
  std::span<std::uint64_t> words = {};     // each becomes the largest of all ranks' in step 3
  Subject subject = {};                    // what step 3 is about
};

enum class CommitOutcome {
  committed,  // the version is durable on all ranks
  retracted,  // it is on none; the one before still is, and the caller may try again
  unknown,    // the ranks could not agree: only reopening the pool shows
};

struct CommitResult {
  CommitOutcome outcome;
  Status status;  // success only if committed
};

// Collective. `next` is the version to come; its arrays' working copies have been stored and
// flushed by this rank with outcome `data`, but not fenced.
CommitResult commit_version(const CommitParties& parties, const Catalogue& next,
                            const Status& data);

// Declares the slot of `version` open, whose parent will be `parent`: from here on copies that no
// other slot names may be stored to, and `parent` is the head. Durable when it returns.
Status open_slot(Device& device, Slots& slots, std::uint64_t version, std::uint64_t parent);

// Declares that `version` no longer exists. Durable when it returns.
Status delete_slot(Device& device, Slots& slots, std::uint64_t version, std::uint64_t parent);

}  // namespace perdure
