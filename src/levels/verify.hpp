// SPDX-License-Identifier: BSD-3-Clause
//
// Verify: what could be lost of a job now without loss, as the files of its levels say.
//
// Reads the directories of the pool on as many nodes as can be seen, and the drains that are named.
// Each rank's file, image, guard and drained image is read whole and compared with its checksums,
// unless `data` is false; what is damaged counts as lost. A version that was being taken when the
// job ended lacks files, and that is no damage: levels.K2 of own_files.hpp keeps the one before.
//
// Threads: any. Nothing is changed or locked. Failure: Code::not_found if no directory holds a
// pool, Code::foreign if they hold those of different jobs. What is wrong with a file is a problem
// of the report.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/status.hpp"
#include "levels/choice.hpp"
#include "levels/level_file.hpp"

namespace perdure {

// A failure group that guards say they were written by.
struct KeptGroup {
  std::vector<std::uint32_t> members;
  std::uint32_t losses = 0;            // that it bears, whichever they are, when it is whole
  std::vector<std::uint32_t> missing;  // members whose image or guard is not there
  std::string scheme;                  // "partner", "xor:4", "rs:2+2"
  // Members, and so nodes, that may still be lost; more are missing than it bears: 0.
  std::uint32_t left() const {
    return losses - std::min(losses, static_cast<std::uint32_t>(missing.size()));
  }
};

// A version that nodes keep beside the pool.
struct KeptVersion {
  VersionId id;
  std::vector<std::uint32_t> images;  // ranks whose image is there and whole
  std::vector<std::uint32_t> guards;  // ranks whose guard is there and whole
  bool restorable = false;            // every rank's image is there, or can be rebuilt
  std::uint32_t losses = 0;           // nodes, whichever they are, that may be lost; up to 3
  std::vector<KeptGroup> groups;
};

// A version in the directory of a drain.
struct DrainedVersion {
  std::string place;
  VersionId id;
  std::string problem;  // why it is not whole; or ""
  // It is of another run, which went on from an earlier version than these nodes hold: a restart on
  // them does not take it.
  bool fork = false;
};

// What a restart would take (choice.hpp).
struct RestartVersion {
  RestartLevel level = RestartLevel::none;
  VersionId id;
};

struct VerifiedNode {
  // Images and guards of a version.
  struct Kept {
    VersionId id;
    std::vector<std::uint32_t> images;  // whose are here and whole
    std::vector<std::uint32_t> guards;
  };
  std::string directory;
  bool pool = false;                     // it has a job record
  std::vector<std::uint32_t> ranks;      // whose file of the pool is here
  std::vector<std::uint32_t> left_over;  // whose file here is older than one elsewhere
  std::vector<Kept> kept;                // newest first
  RestartVersion without;                // if this node is lost
};

struct LevelsReport {
  JobRecord job;
  std::vector<std::uint32_t> pool_files;  // ranks whose file of the pool is there
  std::vector<VerifiedNode> nodes;        // as they were given
  std::vector<KeptVersion> kept;          // newest first
  std::vector<DrainedVersion> drained;    // newest first of each drain
  RestartVersion now;                     // if nothing more is lost
  RestartVersion without_all;             // if all these nodes are
  // What ranks' files here hold and a restart now would give up, as some file is damaged; 0: none.
  std::uint64_t given_up = 0;
  std::vector<std::string> problems;  // damaged files
  std::vector<std::string> foreign;   // images and guards of other jobs
};

struct VerifyOptions {
  std::vector<std::string> drains;
  bool data = true;
  Trust trust = Trust::own;
  // Called with bytes read, of all, where these are known; false ends it with Code::busy.
  std::function<bool(std::uint64_t done, std::uint64_t total)> progress = nullptr;
};

Result<LevelsReport> verify_levels(const std::vector<std::string>& directories,
                                   const VerifyOptions& options);

}  // namespace perdure
