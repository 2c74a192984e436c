// SPDX-License-Identifier: BSD-3-Clause
#include "pool/rank_files.hpp"

#include "base/agreement.hpp"
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
  if (!rank || job.generation == 0) return false;
  const auto region = read_region(directory, name);
  if (!region.ok()) return false;
  const RegionIdentity& identity = region.value().identity;
  return identity.job_id == job.job_id && identity.ranks != job.ranks &&
         identity.generation < job.generation;
}

namespace {

// The name is that of a job record that was cut short, so what is left of it are remains.
Status leave_note(const Directory& directory, std::uint32_t rank, const std::string& text) {
  const std::string name = fresh_record_name(rank);
  PERDURE_TRY(directory.remove_file(name));
  PERDURE_TRY_ASSIGN(const auto made, directory.create_file(name));
  return write_all(made, directory.path_of(name), text);
}

bool has_note(const Directory& directory, std::uint32_t rank, const std::string& text) {
  const std::string name = fresh_record_name(rank);
  const auto note = directory.open_file(name, FileAccess::read);
  if (!note.ok()) return false;
  const auto bytes = read_rest(note.value(), directory.path_of(name), text.size());
  return bytes.ok() && bytes.value() == text;
}

}  // namespace

Result<std::vector<std::uint32_t>> ranks_with(const Directory* directory, Group& group) {
  const JobId drawn = group.rank() == 0 ? random_job_id() : JobId{};
  std::uint64_t words[] = {drawn.words[0], drawn.words[1]};
  PERDURE_TRY(agree_max(group, Status::success(), words));
  const std::string text = job_id_text({{words[0], words[1]}});
  const bool here = directory != nullptr;
  PERDURE_TRY(agree(group, here ? leave_note(*directory, group.rank(), text) : Status::success()));
  std::vector<std::uint32_t> found;
  for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) {
    if (rank == group.rank() || (here && has_note(*directory, rank, text))) found.push_back(rank);
  }
  const Status all = agree(group, Status::success());
  if (here) (void)directory->remove_file(fresh_record_name(group.rank()));
  PERDURE_TRY(all);
  return found;
}

Status remove_remains(const Directory& directory, const JobRecord& job) {
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    if (is_remains(directory, job, name)) PERDURE_TRY(directory.remove_file(name));
  }
  return Status::success();
}

}  // namespace perdure
