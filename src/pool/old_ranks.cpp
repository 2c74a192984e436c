// SPDX-License-Identifier: BSD-3-Clause
#include "pool/old_ranks.hpp"

#include <algorithm>

#include "base/agreement.hpp"
#include "pool/box_note.hpp"
#include "pool/inspect.hpp"
#include "pool/pool_directory.hpp"
#include "pool/rank_files.hpp"

namespace perdure {

Result<std::unique_ptr<OldRanks>> OldRanks::open(const std::string& path, const JobRecord& job,
                                                 Group& group, const OpenOptions& options) {
  auto directory = Directory::open(path, options.trust);
  PERDURE_TRY(agree(group, directory.status()));
  std::unique_ptr<OldRanks> old(new OldRanks(directory.take(), job));
  PERDURE_TRY(old->lock_all(group, options));
  Status local = old->check_record(options);
  PERDURE_TRY(agree(group, local));
  if (group.rank() == 0) local = remove_remains(old->directory_, old->job_);
  PERDURE_TRY(agree(group, local));
  local = old->read(options);
  if (local.ok()) local = old->check_divisible(options);
  std::uint64_t same[] = {old->version_, ~old->version_};
  PERDURE_TRY(agree_max(group, local, same));
  if (same[0] != ~same[1]) {
    return Status(Code::damaged, "the ranks see different files in ", path,
                  ": another number of ranks needs a directory that all of them share");
  }
  return old;
}

Status OldRanks::lock(std::uint32_t rank, const OpenOptions& options) {
  const std::string name = rank_file_name(rank);
  PERDURE_TRY_ASSIGN(auto file, directory_.open_file(name, FileAccess::read));
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

// It was read before the locks were taken.
Status OldRanks::check_record(const OpenOptions& options) const {
  PERDURE_TRY_ASSIGN(const auto now, read_job_record(directory_));
  if (!(now.job_id == job_.job_id) || now.ranks != job_.ranks ||
      now.generation != job_.generation) {
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
  if (options.keep != 0 && options.keep != report.keep) {
    return Status(Code::shape_mismatch, "the pool ", directory_.path(), " keeps ", report.keep,
                  " versions since it was made, not ", options.keep, "; ask for ", report.keep,
                  " or for 0");
  }
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
    generation_ = std::max(generation_, rank.region.identity.generation);
    ranks_.push_back({*held, boxes_of(*held)});
  }
  return Status::success();
}

const GlobalBox* OldRanks::box(std::uint32_t rank, const std::string& name) const {
  const auto found = ranks_[rank].boxes.find({name, 0});
  return found == ranks_[rank].boxes.end() ? nullptr : &found->second;
}

Result<StoredArray> OldRanks::open_array(std::uint32_t rank, const ArrayEntry& entry) const {
  const std::string name = rank_file_name(rank);
  PERDURE_TRY_ASSIGN(auto file, directory_.open_file(name, FileAccess::read));
  return StoredArray::open(std::move(file), directory_.path_of(name), entry, geometry_.block_bytes);
}

Status OldRanks::check_divisible(const OpenOptions& options) const {
  const auto refused = [this](const std::string& what) {
    return Status(Code::rank_mismatch, "the pool ", directory_.path(), " was made by ", ranks(),
                  " ranks and has ", what, ", which no other number of ranks can take over; start ",
                  ranks(), " ranks");
  };
  if (options.pool.taker != nullptr) return refused("other levels (PERDURE_LEVELS)");
  PERDURE_TRY_ASSIGN(const auto names, directory_.names());
  for (const std::string& name : names) {
    if (options.belongs && options.belongs(name)) return refused("the file " + name);
  }
  for (const OldRank& rank : ranks_) {
    for (const ArrayEntry& entry : rank.catalogue.arrays) {
      if (entry.part != 0) return refused("the window " + quoted(entry.name));
      if (entry.spare_copies != 0) {
        return refused("the object of in-place versioning " + quoted(entry.name));
      }
    }
  }
  return Status::success();
}

}  // namespace perdure
