// Job record: whose pool a directory holds, and for how many ranks.
//
// Written under another name and renamed, so it is whole or absent. Ranks that share a directory
// write the same bytes, so the last one to rename does no harm.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.hpp"
#include "pmem/region.hpp"

namespace perdure {

struct JobRecord {
  JobId job_id;
  std::string job_name;
  std::uint32_t ranks = 0;
  std::uint64_t created_ns = 0;
};

std::string job_record_path(const std::string& directory);
std::string rank_file_path(const std::string& directory, std::uint32_t rank);

// Code::not_found when there is none, damaged or newer_format when it can't be used.
Result<JobRecord> read_job_record(const std::string& directory);

// Durable when it returns. `rank` keeps the writers of a shared directory apart.
Status write_job_record(const std::string& directory, const JobRecord& record, std::uint32_t rank);

// Makes the directory's entries durable.
Status sync_directory(const std::string& directory);

}  // namespace perdure
