// SPDX-License-Identifier: BSD-3-Clause
//
// Old ranks: the version of the ranks that made a pool, which another number of ranks goes on with.
// It is read where it lies, and nothing is stored to it:
//
//   rank files   all in one directory, which all new ranks see
//   old version  an image of each old rank, as levels have it, which all new ranks can read. The
//                pool's directory may be another one on each node
//
// Rank files that are there are locked: here, or by levels.
//
// Threads: as the pool.
#pragma once

#include <cstdint>
#include <functional>
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

// Of another number of ranks, as levels have it (levels/other_ranks.hpp).
struct OldVersion {
  JobRecord job;      // of the ranks that made it, and the lineage that goes on from it
  std::string place;  // for people
  Geometry geometry;
  std::vector<Catalogue> catalogues;  // by rank
  std::function<Result<StoredArray>(std::uint32_t rank, const ArrayEntry& entry)> open_array;
  std::vector<FileHandle> locks;  // of rank files in this rank's directory
};

class OldRanks {
 public:
  // [collective] `job`: the record that all ranks have read. Chooses the version that a restart of
  // the old ranks would give back. Code::busy: somebody uses the pool, or has just changed it.
  static Result<std::unique_ptr<OldRanks>> open(const std::string& path, const JobRecord& job,
                                                Group& group, const OpenOptions& options);
  // [collective] The same of images. `path` is there on every node.
  static Result<std::unique_ptr<OldRanks>> of_images(const std::string& path, OldVersion version,
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
  // This rank writes the job record of its directory, and removes remains there.
  bool leads() const { return sharers_.front() == own_rank_; }
  // The new ranks that have the same directory.
  const std::vector<std::uint32_t>& sharers() const { return sharers_; }

  const Catalogue& catalogue(std::uint32_t rank) const { return ranks_[rank].catalogue; }
  // Null: the rank has said none.
  const GlobalBox* box(std::uint32_t rank, const std::string& name) const;
  Result<StoredArray> open_array(std::uint32_t rank, const ArrayEntry& entry) const;

 private:
  struct OldRank {
    Catalogue catalogue;
    GlobalBoxes boxes;
  };
  OldRanks(Directory directory, JobRecord job, const Group& group);
  Status lock(std::uint32_t rank, const OpenOptions& options);
  Status lock_all(Group& group, const OpenOptions& options);
  Status check_record(const OpenOptions& options) const;
  Status read(const OpenOptions& options);
  Status recover_files(const OpenOptions& options) const;
  // What can't be divided anew, by name; success: nothing.
  Status check_files(const OpenOptions& options) const;
  Status check_arrays() const;

  Directory directory_;
  JobRecord job_;
  std::uint32_t own_rank_;
  std::vector<std::uint32_t> sharers_;
  std::function<Result<StoredArray>(std::uint32_t rank, const ArrayEntry& entry)> open_image_;
  std::vector<FileHandle> locks_;
  std::vector<OldRank> ranks_;
  std::uint64_t version_ = 0;
  std::uint64_t generation_ = 0;
  JobId lineage_;
  Geometry geometry_;
  bool images_have_files_ = false;  // which the version needs, and which no part has
};

}  // namespace perdure
