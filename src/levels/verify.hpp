// Verify: what could be lost of a job now without loss, as the files of its levels say.
//
// Reads the directories of the pool on as many nodes as can be seen, and the drains that are named.
// Each image, guard and drained image is read whole and compared with its checksums, unless `data`
// is false; what is damaged counts as lost.
//
// Threads: any. Failure: Code::not_found if no directory holds a pool, Code::foreign if they hold
// those of different jobs. What is wrong with a file is a problem of the report.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/files.hpp"
#include "base/status.hpp"
#include "levels/level_file.hpp"

namespace perdure {

// A version that nodes keep beside the pool.
struct KeptVersion {
  VersionId id;
  std::vector<std::uint32_t> images;  // ranks whose image is there and whole
  std::vector<std::uint32_t> guards;  // ranks whose guard is there and whole
  bool restorable = false;            // every rank's image is there, or can be rebuilt
  std::uint32_t losses = 0;           // nodes, whichever they are, that may be lost; up to 3
};

// A version in the directory of a drain.
struct DrainedVersion {
  std::string place;
  VersionId id;
  std::string problem;  // why it is not whole; or ""
};

struct LevelsReport {
  JobRecord job;
  std::vector<std::uint32_t> pool_files;  // ranks whose file of the pool is there
  std::vector<KeptVersion> kept;          // newest first
  std::vector<DrainedVersion> drained;    // newest first of each drain
  std::vector<std::string> problems;      // damaged files
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
