// SPDX-License-Identifier: BSD-3-Clause
#include "pool/pool_directory.hpp"

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "pmem/delay_device.hpp"
#include "pmem/file_device.hpp"
#include "pmem/region_format.hpp"
#include "pool/catalogue.hpp"
#include "pool/job_record.hpp"
#include "pool/judgement.hpp"
#include "pool/rank_change.hpp"
#include "pool/rank_files.hpp"

namespace perdure {
namespace {

// What this rank sees before anything is opened.
struct Sight {
  bool record = false;
  bool file = false;
  JobRecord job;
};

// The same for all ranks, after they have exchanged it.
struct Situation {
  bool exists = false;
  bool other_ranks = false;  // made it, and that is accepted
};

Result<Sight> look(const std::string& path, const Group& group, const OpenOptions& options) {
  Sight sight;
  PERDURE_TRY(settle_names(path, group.rank(), group.ranks(), options.lock_wait_ms, options.trust));
  auto directory = Directory::open(path, options.trust);
  if (directory.status().code() == Code::not_found) return sight;
  if (!directory.ok()) return directory.status();
  sight.file = directory.value().holds(rank_file_name(group.rank()));
  auto record = read_job_record(directory.value());
  if (record.ok()) {
    sight.record = true;
    sight.job = record.take();
  } else if (record.status().code() != Code::not_found) {
    if (!options.discard || record.status().code() == Code::foreign) return record.status();
    sight.record = true;  // damaged, but to be discarded
    sight.job = {{}, options.job_name, group.ranks(), 0, {}};
  }
  return sight;
}

Status check_owner(const std::string& directory, const Sight& sight, const Group& group,
                   const OpenOptions& options) {
  if (!options.any_job && sight.job.job_name != options.job_name) {
    return Status(Code::foreign, "the pool ", directory, " belongs to job ",
                  quoted(sight.job.job_name), ", this is ", quoted(options.job_name),
                  "; use another directory, or, if the program was renamed, PERDURE_ANY_JOB");
  }
  if (!options.discard && !options.any_ranks && sight.job.ranks != group.ranks()) {
    return Status(Code::rank_mismatch, "the pool ", directory, " was made by ", sight.job.ranks,
                  " ranks, this job has ", group.ranks(), "; start ", sight.job.ranks,
                  " ranks, or open it with PERDURE_ANY_RANKS");
  }
  return Status::success();
}

Status check_presence(const std::string& directory, const Sight& sight, const Group& group,
                      bool some_record, bool discard) {
  if (!some_record || discard) return Status::success();
  if (!sight.record) {
    return Status(Code::not_found, directory, " holds no job record for rank ", group.rank(),
                  " although other ranks have one: this node's part of the pool is missing");
  }
  if (!sight.file && sight.job.ranks == group.ranks()) {
    return Status(
        Code::not_found, rank_file_path(directory, group.rank()),
        " is missing: without it no version is complete; bring the file back; `perdure pool show ",
        directory, "` says what the other ranks hold");
  }
  return Status::success();
}

// Tells all ranks what each sees; decides whether there is a pool.
Result<Situation> agree_on_situation(const std::string& directory, const Result<Sight>& seen,
                                     Group& group, const OpenOptions& options) {
  const Sight sight = seen.ok() ? seen.value() : Sight{};
  std::uint64_t values[] = {sight.record ? 1U : 0U};
  PERDURE_TRY(agree_max(group, seen.status(), values));
  const bool exists = values[0] != 0;
  // Whose pool it is comes first: a rank too many does not hear that its file is missing.
  Status local = sight.record ? check_owner(directory, sight, group, options) : Status::success();
  if (local.ok()) local = check_presence(directory, sight, group, exists, options.discard);
  if (local.ok() && !exists && options.must_exist) {
    local = Status(Code::not_found, directory, " holds no pool");
  }
  if (local.ok() && options.keep + 1 > slots_max) {
    local = Status(Code::invalid_argument, "a pool keeps 1 to ", slots_max - 1, " versions, not ",
                   options.keep);
  }
  const std::uint64_t ranks = sight.record ? sight.job.ranks : 0;
  std::uint64_t all[] = {options.keep, ~std::uint64_t{options.keep}, ranks,
                         sight.record ? ~ranks : 0};
  PERDURE_TRY(agree_max(group, local, all));
  if (all[0] != ~all[1]) {
    return Status(Code::invalid_argument, "the ranks ask for different numbers of versions, ",
                  ~all[1], " to ", all[0]);
  }
  if (exists && all[2] != ~all[3]) {
    return Status(Code::foreign, "the ranks' parts of ", directory, " were made by ", ~all[3],
                  " and by ", all[2], " ranks: they belong to different pools");
  }
  const bool others = exists && !options.discard && sight.job.ranks != group.ranks();
  return Situation{exists, others};
}

Result<std::unique_ptr<Device>> open_rank_file(const std::string& path, bool create,
                                               const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto device, open_file_device(path, {.create = create,
                                                          .lock_wait_ms = options.lock_wait_ms,
                                                          .trust = options.trust}));
  return options.around ? options.around(std::move(device)) : std::move(device);
}

// pool.F1: a rank file in a directory without a job record may be overwritten only if it holds
// nothing.
Status check_remains(const std::string& path, const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto device, open_rank_file(path, false, options));
  auto region = check_region(*device);
  if (!region.ok()) return Status::success();  // never finished
  const Judgement judged = judge_slots(Slots(*device, region.value()).read_all());
  if (judged.offers.empty() || judged.offers.front().version == 0) return Status::success();
  return Status(Code::damaged, path, " holds version ", judged.offers.front().version,
                " but the pool's job record is missing; bring the file 'job' back. PERDURE_DISCARD "
                "would destroy that version");
}

// A file that is in use, or is somebody else's, is not made anew.
bool must_stay(const Status& status) {
  return status.code() == Code::busy || status.code() == Code::foreign;
}

// Several ranks of a node remove the same files.
Status remove_rest(const Directory& directory, std::uint32_t rank, const OpenOptions& options) {
  PERDURE_TRY(directory.remove_file(rank_file_name(rank)));
  PERDURE_TRY(directory.remove_file(fresh_rank_file_name(rank)));
  PERDURE_TRY(directory.remove_file(next_rank_file_name(rank)));
  if (!options.discard) return Status::success();
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    const bool belongs = is_first_note_file(name) || (options.belongs && options.belongs(name));
    if (belongs) PERDURE_TRY(directory.remove_file(name));
  }
  return Status::success();
}

// Removes what was there, all ranks' job records before any rank's file (pool.F2, pool.F3).
Status clear_directory(const Directory& directory, Group& group, const OpenOptions& options) {
  const std::string name = rank_file_name(group.rank());
  const std::string path = directory.path_of(name);
  std::unique_ptr<Device> held;
  Status local;
  const std::string fresh = directory.path_of(fresh_rank_file_name(group.rank()));
  const auto made = open_rank_file(fresh, false, options);  // by somebody else, now
  if (!made.ok() && must_stay(made.status())) local = made.status();
  if (local.ok() && directory.holds(name)) {
    auto device = open_rank_file(path, false, options);
    if (device.ok()) held = device.take();
    if (!device.ok() && must_stay(device.status())) local = device.status();
    if (local.ok() && !options.discard) {
      held.reset();
      local = check_remains(path, options);
    }
  }
  PERDURE_TRY(agree(group, local));
  local = directory.remove_file(job_record_name);
  if (local.ok()) local = directory.sync();
  PERDURE_TRY(agree(group, local));
  return agree(group, remove_rest(directory, group.rank(), options));
}

// Rank 0's choice, sent to all.
Result<JobRecord> agree_on_record(Group& group, const OpenOptions& options) {
  const JobId id = group.rank() == 0 ? random_job_id() : JobId{};
  std::uint64_t values[] = {id.words[0], id.words[1], group.rank() == 0 ? wall_clock_ns() : 0};
  PERDURE_TRY(agree_max(group, Status::success(), values));
  return JobRecord{{{values[0], values[1]}}, options.job_name, group.ranks(), values[2], {}};
}

Status make_rank_file(const Directory& directory, const JobRecord& record, std::uint32_t rank,
                      const OpenOptions& options) {
  const std::string fresh = fresh_rank_file_name(rank);
  PERDURE_TRY_ASSIGN(auto device, open_rank_file(directory.path_of(fresh), true, options));
  Geometry geometry = options.geometry;
  if (options.keep != 0) geometry.slots = options.keep + 1;
  const RegionIdentity identity{record.job_id, record.job_name, rank, record.ranks};
  PERDURE_TRY_ASSIGN(auto region, format_region(*device, identity, geometry));
  PERDURE_TRY(format_slots(*device, region));
  return directory.rename_file(fresh, rank_file_name(rank));
}

// pool.F1. On failure no rank leaves anything.
Status make_pool(const std::string& path, Group& group, const OpenOptions& options) {
  auto made = Directory::make(path, options.trust);
  PERDURE_TRY(agree(group, made.status()));
  const Directory& directory = made.value();
  PERDURE_TRY(clear_directory(directory, group, options));
  PERDURE_TRY_ASSIGN(const auto record, agree_on_record(group, options));
  Status all = agree(group, make_rank_file(directory, record, group.rank(), options));
  if (all.ok()) {
    all = agree(group, write_job_record(directory, record, group.rank()));
  }
  if (all.ok()) return all;
  // The error that is reported is the one that ended the making; what can't be removed stays
  // without a job record, or empty.
  (void)directory.remove_file(job_record_name);
  (void)agree(group, Status::success());
  (void)directory.remove_file(rank_file_name(group.rank()));
  (void)directory.remove_file(fresh_rank_file_name(group.rank()));
  remove_directory(path);  // only if nothing else is in it
  return all;
}

Status check_identity(const std::string& path, const Region& region, const JobRecord& record,
                      const Group& group) {
  const RegionIdentity& identity = region.identity;
  if (is_file_of(region, record, group.rank()) && record.ranks == group.ranks()) {
    return Status::success();
  }
  return Status(Code::foreign, path, " is the file of rank ", identity.rank, " of ", identity.ranks,
                " of job ", job_id_text(identity.job_id), ", not of rank ", group.rank(),
                " of job ", job_id_text(record.job_id), ": files were swapped or copied");
}

Status check_keep(const std::string& path, const Region& region, const OpenOptions& options) {
  const std::uint32_t keep = region.geometry.slots - 1;
  if (options.keep == 0 || options.keep == keep) return Status::success();
  return Status(Code::shape_mismatch, path, " keeps ", keep, " versions since it was made, not ",
                options.keep, "; ask for ", keep, " or for 0");
}

struct OpenedFile {
  std::unique_ptr<Device> device;
  Region region;
};

Status changed_just_now(const std::string& directory) {
  return Status(Code::busy, "another job has just gone on with the pool ", directory,
                " on another number of ranks; try again");
}

Result<OpenedFile> open_checked(const std::string& directory, const Group& group,
                                const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto found, Directory::open(directory, options.trust));
  PERDURE_TRY_ASSIGN(auto record, read_job_record(found));
  if (!options.any_job) PERDURE_TRY(check_place(record, found));
  if (record.ranks != group.ranks()) return changed_just_now(directory);
  const std::string path = rank_file_path(directory, group.rank());
  PERDURE_TRY_ASSIGN(auto device, open_rank_file(path, false, options));
  PERDURE_TRY_ASSIGN(auto region, check_region(*device));
  PERDURE_TRY(check_identity(path, region, record, group));
  PERDURE_TRY(check_keep(path, region, options));
  PERDURE_TRY_ASSIGN(const auto now, read_job_record(found));  // rank_change.hpp, pool.R1
  if (now.generation != record.generation) return changed_just_now(directory);
  return OpenedFile{std::move(device), std::move(region)};
}

Result<std::unique_ptr<Device>> emulate(std::unique_ptr<Device> device, const Region& region,
                                        const OpenOptions& options) {
  if (options.emulate.empty()) return device;
  return emulate_memory(std::move(device), options.emulate, options.delay,
                        "/perdure-" + job_id_text(region.identity.job_id));
}

}  // namespace

namespace {

void remove_remains_of(const std::string& directory, const OpenOptions& options) {
  const auto found = Directory::open(directory, options.trust);
  if (!found.ok()) return;
  const auto record = read_job_record(found.value());
  if (record.ok()) (void)remove_remains(found.value(), record.value());
}

// [collective]
Result<std::unique_ptr<Pool>> attach(OpenedFile file, const std::string& directory, Group& group,
                                     const OpenOptions& options,
                                     std::unique_ptr<RankChange> change) {
  auto device = emulate(std::move(file.device), file.region, options);
  PERDURE_TRY(agree(group, device.status()));
  auto pool = Pool::attach(device.take(), file.region, group, options.pool);
  if (pool.ok()) pool.value()->set_directory(directory, std::move(change));
  return pool;
}

Result<std::unique_ptr<Pool>> attach_changed(std::unique_ptr<OldRanks> old,
                                             const std::string& directory, Group& group,
                                             const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto change, RankChange::begin(std::move(old), group, options));
  OpenedFile file{change->take_device(), change->region()};
  return attach(std::move(file), directory, group, options, std::move(change));
}

Result<std::unique_ptr<Pool>> open_with_other_ranks(const std::string& directory,
                                                    const JobRecord& job, Group& group,
                                                    const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto old, OldRanks::open(directory, job, group, options));
  return attach_changed(std::move(old), directory, group, options);
}

}  // namespace

Result<std::unique_ptr<Pool>> open_pool_of(const std::string& directory, Group& group,
                                           const OpenOptions& options, OldVersion version) {
  PERDURE_TRY_ASSIGN(auto old, OldRanks::of_images(directory, std::move(version), group, options));
  return attach_changed(std::move(old), directory, group, options);
}

Result<std::unique_ptr<Pool>> open_pool(const std::string& directory, Group& group,
                                        const OpenOptions& options) {
  const auto seen = look(directory, group, options);
  PERDURE_TRY_ASSIGN(const auto situation, agree_on_situation(directory, seen, group, options));
  if (situation.other_ranks) {
    return open_with_other_ranks(directory, seen.value().job, group, options);
  }
  if (!situation.exists || options.discard) {
    PERDURE_TRY(make_pool(directory, group, options));
  }
  auto opened = open_checked(directory, group, options);
  const JobId id = opened.ok() ? opened.value().region.identity.job_id : JobId{};
  const std::uint64_t slots = opened.ok() ? opened.value().region.geometry.slots : 0;
  const JobId line = opened.ok() ? opened.value().region.identity.lineage : JobId{};
  std::uint64_t ids[] = {id.words[0], ~id.words[0], id.words[1], ~id.words[1], slots, ~slots};
  PERDURE_TRY(agree_max(group, opened.status(), ids));
  if (ids[0] != ~ids[1] || ids[2] != ~ids[3] || ids[4] != ~ids[5]) {
    return Status(Code::foreign, "the ranks' parts of ", directory, " belong to different jobs");
  }
  std::uint64_t lines[] = {line.words[0], ~line.words[0], line.words[1], ~line.words[1]};
  PERDURE_TRY(agree_max(group, Status::success(), lines));
  if (lines[0] != ~lines[1] || lines[2] != ~lines[3]) {
    return Status(Code::foreign, "the ranks' parts of ", directory,
                  " belong to different runs of the job, of which one went on from a drained "
                  "version without the other");
  }
  // All rank files are locked. What can't be removed disturbs nobody.
  if (group.rank() == 0) remove_remains_of(directory, options);
  return attach(opened.take(), directory, group, options, nullptr);
}

}  // namespace perdure
