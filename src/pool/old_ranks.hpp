// SPDX-License-Identifier: BSD-3-Clause
//
// Old ranks: the files of the ranks that made a pool, which another number of ranks goes on with.
// They are locked and read, and nothing is stored to them.
//
// Each new rank locks some of them, and reads all: all must be in a directory that it sees.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/file_handle.hpp"
#include "base/files.hpp"
#include "base/group.hpp"
#include "base/status.hpp"
#include "pool/catalogue.hpp"
#include "pool/job_record.hpp"
#include "pool/stored_array.hpp"

namespace perdure {

struct OpenOptions;

class OldRanks {
 public:
  // [collective] `job`: the record that all ranks have read. Chooses the version that a restart of
  // the old ranks would give back. Code::busy: somebody uses the pool, or has just changed it.
  static Result<std::unique_ptr<OldRanks>> open(const std::string& path, const JobRecord& job,
                                                Group& group, const OpenOptions& options);

  const Directory& directory() const { return directory_; }
  const JobRecord& job() const { return job_; }
  std::uint32_t ranks() const { return job_.ranks; }
  std::uint64_t version() const { return version_; }  // 0: nothing was committed
  std::uint64_t committed_ns() const { return ranks_.front().catalogue.committed_ns; }
  std::uint64_t incarnation() const { return ranks_.front().catalogue.incarnation; }
  std::uint64_t generation() const { return generation_; }  // the highest of the files
  const JobId& lineage() const { return lineage_; }
  const Geometry& geometry() const { return geometry_; }

  const Catalogue& catalogue(std::uint32_t rank) const { return ranks_[rank].catalogue; }
  // Null: the rank has said none.
  const GlobalBox* box(std::uint32_t rank, const std::string& name) const;
  Result<StoredArray> open_array(std::uint32_t rank, const ArrayEntry& entry) const;
  // What can't be divided anew, by name; success: nothing.
  Status check_divisible(const OpenOptions& options) const;

 private:
  struct OldRank {
    Catalogue catalogue;
    GlobalBoxes boxes;
  };
  OldRanks(Directory directory, JobRecord job)
      : directory_(std::move(directory)), job_(std::move(job)) {}
  Status lock(std::uint32_t rank, const OpenOptions& options);
  Status lock_all(Group& group, const OpenOptions& options);
  Status check_record(const OpenOptions& options) const;
  Status read(const OpenOptions& options);

  Directory directory_;
  JobRecord job_;
  std::vector<FileHandle> locks_;
  std::vector<OldRank> ranks_;
  std::uint64_t version_ = 0;
  std::uint64_t generation_ = 0;
  JobId lineage_;
  Geometry geometry_;
};

}  // namespace perdure
