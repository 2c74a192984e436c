// SPDX-License-Identifier: BSD-3-Clause
#include "pool/rank_files.hpp"

#include "pmem/file_device.hpp"

namespace perdure {
namespace {

bool is_same(const JobRecord& one, const JobRecord& other) {
  return one.job_id == other.job_id && one.ranks == other.ranks &&
         one.generation == other.generation;
}

// A process that holds the file gives it its name itself.
Status settle_name(const Directory& directory, const JobRecord& job, std::uint32_t rank,
                   std::uint32_t lock_wait_ms) {
  const std::string next = next_rank_file_name(rank);
  if (current_rank_file(directory, job, rank) != next) return Status::success();
  auto file = directory.open_file(next, FileAccess::read);
  if (file.status().code() == Code::not_found) return Status::success();
  PERDURE_TRY(file.status());
  Status locked = lock_file(file.value().fd(), directory.path_of(next),
                            {.wait_ms = lock_wait_ms, .own_at_once = true});
  if (!locked.ok() && locked.code() != Code::unsupported) return locked;
  PERDURE_TRY_ASSIGN(const auto now, read_job_record(directory));
  const bool still = is_same(job, now) && directory.is_file(file.value().fd(), next);
  return still ? directory.rename_file(next, rank_file_name(rank)) : Status::success();
}

}  // namespace

Result<Region> read_region(const Directory& directory, const std::string& name) {
  PERDURE_TRY_ASSIGN(
      auto device,
      open_file_device(directory.path_of(name),
                       {.read_only = true, .may_be_cut = true, .trust = Trust::anyone}));
  return check_region(*device);
}

bool is_file_of(const Region& region, const JobRecord& job, std::uint32_t rank) {
  const RegionIdentity& identity = region.identity;
  return identity.job_id == job.job_id && identity.rank == rank && identity.ranks == job.ranks &&
         identity.generation >= job.generation;
}

std::string current_rank_file(const Directory& directory, const JobRecord& job,
                              std::uint32_t rank) {
  std::string next = next_rank_file_name(rank);
  if (job.generation != 0 && directory.holds(next)) {
    const auto region = read_region(directory, next);
    if (region.ok() && is_file_of(region.value(), job, rank)) return next;
  }
  return rank_file_name(rank);
}

Status settle_names(const std::string& path, std::uint32_t first, std::uint32_t step,
                    std::uint32_t lock_wait_ms, Trust trust) {
  auto directory = Directory::open(path, trust);
  if (!directory.ok()) return Status::success();  // who opens the pool says so
  const auto job = read_job_record(directory.value());
  if (!job.ok() || job.value().generation == 0) return Status::success();
  for (std::uint32_t rank = first; rank < job.value().ranks; rank += step) {
    PERDURE_TRY(settle_name(directory.value(), job.value(), rank, lock_wait_ms));
  }
  return Status::success();
}

bool is_remains(const Directory& directory, const JobRecord& job, const std::string& name) {
  if (name.starts_with(job_record_name) && is_unfinished(name)) return true;
  if (const auto rank = rank_of_next_file(name)) {
    return *rank >= job.ranks || current_rank_file(directory, job, *rank) != name;
  }
  const auto rank = rank_of_file(name);
  if (!rank || *rank < job.ranks || job.generation == 0) return false;
  const auto region = read_region(directory, name);
  return region.ok() && region.value().identity.job_id == job.job_id &&
         region.value().identity.generation < job.generation;
}

Status remove_remains(const Directory& directory, const JobRecord& job) {
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    if (is_remains(directory, job, name)) PERDURE_TRY(directory.remove_file(name));
  }
  return Status::success();
}

}  // namespace perdure
