// SPDX-License-Identifier: BSD-3-Clause
#include "pool/old_ranks.hpp"

#include <algorithm>

#include "base/agreement.hpp"
#include "pool/box_note.hpp"
#include "pool/inspect.hpp"
#include "pool/pool_directory.hpp"
#include "pool/rank_files.hpp"

namespace perdure {
namespace {

Status check_keep(const std::string& place, std::uint32_t kept, std::uint32_t asked) {
  if (asked == 0 || asked == kept) return Status::success();
  return Status(Code::shape_mismatch, "the pool ", place, " keeps ", kept,
                " versions since it was made, not ", asked, "; ask for ", kept, " or for 0");
}

}  // namespace

Result<std::unique_ptr<OldRanks>> OldRanks::open(const std::string& path, const JobRecord& job,
                                                 Group& group, const OpenOptions& options) {
  auto directory = Directory::open(path, options.trust);
  PERDURE_TRY(agree(group, directory.status()));
  std::unique_ptr<OldRanks> old(new OldRanks(directory.take(), job, group));
  PERDURE_TRY(old->lock_all(group, options));
  Status local = old->check_record(options);
  PERDURE_TRY(agree(group, local));
  if (group.rank() == 0) local = remove_remains(old->directory_, old->job_);
  PERDURE_TRY(agree(group, local));
  local = old->read(options);
  if (local.ok()) local = old->check_arrays();
  std::uint64_t same[] = {old->version_, ~old->version_};
  PERDURE_TRY(agree_max(group, local, same));
  if (same[0] != ~same[1]) {
    return Status(Code::damaged, "the ranks see different files in ", path,
                  ": another number of ranks needs a directory that all of them share");
  }
  local = group.rank() == 0 ? old->recover_files(options) : Status::success();
  PERDURE_TRY(agree(group, local));
  local = old->check_files(options);
  PERDURE_TRY(agree(group, local));
  return old;
}

OldRanks::OldRanks(Directory directory, JobRecord job, const Group& group)
    : directory_(std::move(directory)), job_(std::move(job)), own_rank_(group.rank()) {
  for (std::uint32_t rank = 0; rank < group.ranks(); ++rank) sharers_.push_back(rank);
}

Result<std::unique_ptr<OldRanks>> OldRanks::of_images(const std::string& path, OldVersion version,
                                                      Group& group, const OpenOptions& options) {
  auto directory = Directory::open(path, options.trust);
  PERDURE_TRY(agree(group, directory.status()));
  std::unique_ptr<OldRanks> old(new OldRanks(directory.take(), version.job, group));
  auto sharers = ranks_with(&old->directory_, group);
  PERDURE_TRY(agree(group, sharers.status()));
  old->sharers_ = sharers.take();
  old->locks_ = std::move(version.locks);
  old->version_ = version.catalogues.front().version;
  old->lineage_ = version.job.lineage;
  old->geometry_ = version.geometry;
  for (Catalogue& catalogue : version.catalogues) {
    GlobalBoxes boxes = boxes_of(catalogue);
    old->ranks_.push_back({std::move(catalogue), std::move(boxes)});
  }
  old->open_image_ = std::move(version.open_array);
  Status local = check_keep(version.place, old->geometry_.slots - 1, options.keep);
  if (local.ok()) local = old->check_files(options);
  if (local.ok()) local = old->check_arrays();
  PERDURE_TRY(agree(group, local));
  return old;
}

// pool.R9.
Status OldRanks::recover_files(const OpenOptions& options) const {
  if (options.recover_files == nullptr) return Status::success();
  const Status done =
      options.recover_files(directory_.path(), job_.job_id, version_, incarnation());
  if (done.code() != Code::unsupported) return done;
  return Status(done.code(), done.message(), "; start ", ranks(),
                " ranks, which made the pool, and close the file");
}

Status OldRanks::lock(std::uint32_t rank, const OpenOptions& options) {
  const std::string name = rank_file_name(rank);
  auto opened = directory_.open_file(name, FileAccess::read);
  if (opened.status().code() == Code::not_found) {
    return Status(Code::not_found, directory_.path_of(name), " is not there for rank ", own_rank_,
                  ": another number of ranks reads the files of all ", ranks(),
                  ". Put them into a directory that all ranks share; or start the job on all "
                  "nodes that have them, with drain=DIRECTORY in PERDURE_LEVELS, one that these "
                  "share, to which the files are brought; or start ",
                  ranks(), " ranks there");
  }
  PERDURE_TRY_ASSIGN(auto file, std::move(opened));
  Status locked = lock_file(file.fd(), directory_.path_of(name),
                            {.wait_ms = options.lock_wait_ms, .own_at_once = true});
  if (!locked.ok() && locked.code() != Code::unsupported) return locked;
  if (!directory_.is_file(file.fd(), name)) {
    return Status(Code::busy, directory_.path_of(name), " was exchanged just now; try again");
  }
  locks_.push_back(std::move(file));
  return Status::success();
}

// The first file comes first: of two jobs that want another number of ranks one gets all locks.
Status OldRanks::lock_all(Group& group, const OpenOptions& options) {
  PERDURE_TRY(agree(group, group.rank() == 0 ? lock(0, options) : Status::success()));
  Status local;
  const std::uint32_t first = group.rank() == 0 ? group.ranks() : group.rank();
  for (std::uint32_t rank = first; rank < ranks() && local.ok(); rank += group.ranks()) {
    local = lock(rank, options);
  }
  return agree(group, local);
}

// It was read before the locks were taken, and after the names were settled. A job that wrote it in
// between, and was killed there, leaves files of older ranks under these names; they give way when
// somebody settles the names, so what is locked is looked at last.
Status OldRanks::check_record(const OpenOptions& options) const {
  PERDURE_TRY_ASSIGN(const auto now, read_job_record(directory_));
  bool same =
      now.job_id == job_.job_id && now.ranks == job_.ranks && now.generation == job_.generation;
  for (std::uint32_t rank = 0; rank < ranks() && same; ++rank) {
    same = current_rank_file(directory_, job_, rank) == rank_file_name(rank);
  }
  std::uint32_t rank = own_rank_;
  for (const FileHandle& locked : locks_) {
    same = same && directory_.is_file(locked.fd(), rank_file_name(rank));
    rank += static_cast<std::uint32_t>(sharers_.size());
  }
  if (!same) {
    return Status(Code::busy, "another job has just gone on with the pool ", directory_.path(),
                  "; try again");
  }
  return options.any_job ? Status::success() : check_place(now, directory_);
}

Status OldRanks::read(const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto report, inspect_pool(directory_.path(), {}));
  if (!report.version) {
    std::string why;
    const auto note = [&why](const std::vector<Finding>& findings) {
      for (const Finding& each : findings) {
        if (each.severity == Severity::damage && why.empty()) why = each.text;
      }
    };
    note(report.findings);
    for (const RankReport& rank : report.ranks) note(rank.findings);
    return Status(Code::damaged, "the pool ", directory_.path(), " holds no version that all ",
                  ranks(), " ranks share: ", why, "; bring the files back, or restart ", ranks(),
                  " ranks");
  }
  PERDURE_TRY(check_keep(directory_.path(), report.keep, options.keep));
  version_ = *report.version;
  generation_ = job_.generation;
  lineage_ = report.ranks.front().region.identity.lineage;
  geometry_ = report.ranks.front().region.geometry;
  for (const RankReport& rank : report.ranks) {
    const Catalogue* const held = catalogue_of(rank, version_);
    const bool alike = rank.region.identity.lineage == lineage_;
    if (held == nullptr || !alike) {
      return Status(Code::damaged, rank.path, " does not belong to the same version ", version_,
                    " as that of rank 0");
    }
    const RegionIdentity& identity = rank.region.identity;
    generation_ = std::max(generation_, identity.generation);
    images_have_files_ =
        images_have_files_ || (identity.image_shares != 0 && identity.image_version == version_);
    ranks_.push_back({*held, boxes_of(*held)});
  }
  return Status::success();
}

const GlobalBox* OldRanks::box(std::uint32_t rank, const std::string& name) const {
  const auto found = ranks_[rank].boxes.find({name, 0});
  return found == ranks_[rank].boxes.end() ? nullptr : &found->second;
}

Result<StoredArray> OldRanks::open_array(std::uint32_t rank, const ArrayEntry& entry) const {
  if (open_image_) return open_image_(rank, entry);
  const std::string name = rank_file_name(rank);
  PERDURE_TRY_ASSIGN(auto file, directory_.open_file(name, FileAccess::read));
  return StoredArray::open(std::move(file), directory_.path_of(name), entry, geometry_.block_bytes);
}

Status OldRanks::check_files(const OpenOptions& options) const {
  if (images_have_files_) {
    return Status(Code::rank_mismatch, "the pool ", directory_.path(), " was made by ", ranks(),
                  " ranks and was brought back from images, which have the cached files that are "
                  "committed with it: start ",
                  ranks(), " ranks, open the files, and commit, before another number goes on");
  }
  PERDURE_TRY_ASSIGN(const auto names, directory_.names());
  for (const std::string& name : names) {
    if (!options.of_cached_file || !options.of_cached_file(name)) continue;
    return Status(Code::rank_mismatch, "the pool ", directory_.path(), " was made by ", ranks(),
                  " ranks, and a cached file is committed with it, whose part is ", name,
                  ": start ", ranks(),
                  " ranks, or bring the file to its version by `perdure cache "
                  "recover ",
                  directory_.path(), "`");
  }
  return Status::success();
}

Status OldRanks::check_arrays() const {
  for (const OldRank& rank : ranks_) {
    for (const ArrayEntry& entry : rank.catalogue.arrays) {
      if (entry.part == 0) continue;
      return Status(Code::rank_mismatch, "the pool ", directory_.path(), " was made by ", ranks(),
                    " ranks and has regions that are attached to the window ", quoted(entry.name),
                    ", which no other number of ranks can take over; start ", ranks(),
                    " ranks, and detach them before the last commit; what is to be divided can be "
                    "in a window with perdure_ranks or perdure_box");
    }
  }
  return Status::success();
}

}  // namespace perdure
