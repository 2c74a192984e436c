// SPDX-License-Identifier: BSD-3-Clause
//
// Crash sweep: runs a small job on the crash device, recovers from every image that a crash at any
// fence could leave, and compares what comes back with a plain array of versions kept aside.
//
// The oracle knows nothing of slots or checksums: it is the list of what was committed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "pmem/region.hpp"
#include "pmem/testing/crash_device.hpp"
#include "pool/catalogue.hpp"

namespace perdure {

struct SweepOptions {
  ArrayMode mode = ArrayMode::copy;
  AtomicityModel model = AtomicityModel::prefix;
  std::size_t line_bytes = 64;
  std::uint64_t versions = 10;
  std::uint64_t images_per_fence = 2000;  // exhaustive up to here, then sampled
  std::uint64_t seed = 1;
  bool asynchronous = false;  // commit_begin / commit_wait
  bool checksums = true;
  std::uint64_t slot_bytes = 1024;  // 256: the catalogue is a tree
  bool rank_local = false;          // each rank has an array that the other lacks
  // Every so many images the recovery is itself crashed at each of its fences, and every so many
  // the job goes on for a version after it. 0: never.
  std::uint64_t recrash_every = 37;
  std::uint64_t continue_every = 11;
};

struct SweepResult {
  std::uint64_t fences = 0;
  std::uint64_t images = 0;   // judged, those of crashed recoveries included
  std::uint64_t sampled = 0;  // fences with more images than the bound
  std::uint64_t wrong = 0;
  std::string first_wrong;  // what was wrong with the first one
};

SweepResult sweep_one_rank(const SweepOptions& options);

// Two ranks that commit together: every consistent cut of their runs (no rank has left an agreement
// that another has not entered), with images of both.
SweepResult sweep_two_ranks(const SweepOptions& options);

// The same for a second run that begins where rank 0 had completed a version that rank 1 had not:
// the abandoned version and the one that takes its number have other contents.
SweepResult sweep_two_ranks_after_a_crash(const SweepOptions& options);

// The same for a run in which one rank's device fails in the middle of a commit, which both then
// try again with other contents.
SweepResult sweep_two_ranks_with_a_failure(const SweepOptions& options);

// The same for a run in which one rank commits while the other makes another collective call, and
// both then commit with other contents.
SweepResult sweep_two_ranks_with_a_mismatch(const SweepOptions& options);

}  // namespace perdure
