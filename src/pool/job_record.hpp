// SPDX-License-Identifier: BSD-3-Clause
//
// Job record: whose pool a directory holds, and for how many ranks.
//
// Written under another name and renamed, so it is whole or absent. Ranks that share a directory
// write the same bytes, so the last one to rename does no harm.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/files.hpp"
#include "base/status.hpp"
#include "pmem/region.hpp"

namespace perdure {

struct PoolPlace {
  std::uint64_t path_checksum = 0;
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  // By its path, or, where that is another one by now, by the directory itself.
  bool allows(const PoolPlace& other) const {
    const bool anywhere = path_checksum == 0 && inode == 0;
    return anywhere || path_checksum == other.path_checksum ||
           (device == other.device && inode == other.inode);
  }
};
PoolPlace place_of(const Directory& directory);

struct JobRecord {
  JobId job_id;
  std::string job_name;
  std::uint32_t ranks = 0;
  std::uint64_t created_ns = 0;
  PoolPlace place;  // where it was made
  // Of what levels keep: which of the job's histories it belongs to (levels/lineage.hpp).
  JobId lineage = {};
  // Rank files of an earlier one are of before the pool got another number of ranks
  // (rank_change.hpp).
  std::uint64_t generation = 0;
};
// The first lineage of a job has the job's id.
inline const JobId& lineage_of(const JobId& job, const JobId& lineage) {
  return lineage == JobId{} ? job : lineage;
}
inline const JobId& lineage_of(const JobRecord& job) {
  return lineage_of(job.job_id, job.lineage);
}
inline bool same_lineage(const JobRecord& one, const JobRecord& other) {
  return one.job_id == other.job_id && lineage_of(one) == lineage_of(other);
}

constexpr const char* job_record_name = "job";
std::string job_record_path(const std::string& directory);
std::string rank_file_path(const std::string& directory, std::uint32_t rank);

std::string rank_file_name(std::uint32_t rank);
// The name of a file that will be the rank's, until it is whole.
std::string fresh_rank_file_name(std::uint32_t rank);
// The name of a file that will be the rank's when the pool gets another number of ranks.
std::string next_rank_file_name(std::uint32_t rank);
// The name of the job record that this rank writes, until it is whole.
std::string fresh_record_name(std::uint32_t rank);
// The rank whose file has this name, if it is the name of one.
std::optional<std::uint32_t> rank_of_file(const std::string& name);
// Whether a job record, or a rank's file, has this name until it is whole.
bool is_unfinished(const std::string& name);
// The rank of which next_rank_file_name() gives this.
std::optional<std::uint32_t> rank_of_next_file(const std::string& name);

// Code::not_found when there is none, damaged or newer_format when it can't be used.
Result<JobRecord> read_job_record(const Directory& directory);

// pool.F5 of pool_directory.hpp.
Status check_place(const JobRecord& record, const Directory& directory);

// The bytes of a record; a place that is zero allows any directory.
std::string job_record_bytes(const JobRecord& record, const PoolPlace& place);

// Notes the directory as the pool's place. Durable when it returns. `rank` keeps the writers of a
// shared directory apart.
Status write_job_record(const Directory& directory, const JobRecord& record, std::uint32_t rank);

}  // namespace perdure
