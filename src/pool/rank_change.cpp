// SPDX-License-Identifier: BSD-3-Clause
#include "pool/rank_change.hpp"

#include <algorithm>

#include "base/agreement.hpp"
#include "pmem/file_device.hpp"
#include "pool/pool_directory.hpp"
#include "pool/rank_files.hpp"

namespace perdure {

Result<std::unique_ptr<RankChange>> RankChange::begin(std::unique_ptr<OldRanks> old, Group& group,
                                                      const OpenOptions& options) {
  const JobRecord job = old->job();
  std::unique_ptr<RankChange> change(new RankChange(group, std::move(old)));
  // Levels count with times.
  std::uint64_t generation[] = {
      std::max(change->old_->generation() + 1, options.pool.incarnation_min)};
  PERDURE_TRY(agree_max(group, Status::success(), generation));
  change->job_ = job;
  change->job_.ranks = group.ranks();
  change->job_.generation = generation[0];
  PERDURE_TRY(agree(group, change->make_file(options)));
  PERDURE_TRY(agree(group, change->check_all_files()));
  return change;
}

RankChange::~RankChange() {
  if (!made_) return;  // pool.R6
  (void)old_->directory().remove_file(file_name());
}

std::string RankChange::file_name() const {
  return next_rank_file_name(group_.rank());
}

// 2. If R is kept, the file is at the version before it, which holds nothing, and the restart
// commits R; else it is at R, which holds nothing (pool.R5).
Status RankChange::make_file(const OpenOptions& options) {
  const Directory& directory = old_->directory();
  PERDURE_TRY(directory.remove_file(file_name()));
  PERDURE_TRY_ASSIGN(device_, open_file_device(directory.path_of(file_name()),
                                               {.create = true,
                                                .lock_wait_ms = options.lock_wait_ms,
                                                .trust = options.trust,
                                                .copied_first = true}));
  made_ = true;
  if (options.around) device_ = options.around(std::move(device_));
  RegionIdentity identity{job_.job_id, job_.job_name, group_.rank(), job_.ranks, job_.generation};
  identity.lineage = old_->lineage();
  PERDURE_TRY_ASSIGN(region_, format_region(*device_, identity, old_->geometry()));
  const std::uint64_t version = old_->version();
  const std::uint64_t before = keeps_version() && version != 0 ? version - 1 : version;
  PERDURE_TRY(format_slots(*device_, region_, {before, old_->incarnation()}));
  return directory.sync();
}

// All new ranks that share a directory, which are all of them where the old ones' files are read,
// have their files there.
Status RankChange::check_all_files() const {
  for (const std::uint32_t rank : old_->sharers()) {
    if (!old_->leads()) break;
    const std::string name = next_rank_file_name(rank);
    const auto region = read_region(old_->directory(), name);
    if (region.ok() && is_file_of(region.value(), job_, rank)) continue;
    return Status(Code::not_found, old_->directory().path_of(name), " was made by rank ", rank,
                  " and is not seen by rank ", group_.rank(),
                  ": another number of ranks "
                  "needs a directory that all of them share");
  }
  return Status::success();
}

RankRule RankChange::said_of(const std::string& array) const {
  const auto found = said_.find(array);
  return found == said_.end() ? RankRule::none : found->second;
}

bool RankChange::lacks_arrays() const {
  return late_ || lacks_ || std::ranges::any_of(said_, [](const auto& each) {
           return each.second == RankRule::by_hand;
         });
}

Status RankChange::check_all_taken() const {
  if (!late_) return Status::success();
  std::set<std::string> lacking;
  for (std::uint32_t rank = 0; rank < old_->ranks(); ++rank) {
    for (const ArrayEntry& entry : old_->catalogue(rank).arrays) {
      const bool by_hand = said_of(entry.name) == RankRule::by_hand;
      if (!by_hand && !taken_.contains(entry.name)) lacking.insert(quoted(entry.name));
    }
  }
  if (lacking.empty()) return Status::success();
  return Status(Code::rank_mismatch, "the pool was made by ", old_->ranks(),
                " ranks, this job has ", group_.ranks(), ", and the first commit would lose ",
                listed(lacking),
                ", which they had: make the windows before that commit; an array beside windows is "
                "opened with PERDURE_BY_HAND and read by perdure_read()");
}

Status RankChange::take_names() {
  const Directory& directory = old_->directory();
  PERDURE_TRY(directory.rename_file(file_name(), rank_file_name(group_.rank())));
  return Status::success();
}

Status RankChange::finish() {
  made_ = false;
  PERDURE_TRY(agree(group_, Status::success()));  // pool.R6
  Status local;
  if (old_->leads()) local = write_job_record(old_->directory(), job_, group_.rank());  // 5
  PERDURE_TRY(agree(group_, local));
  PERDURE_TRY(agree(group_, take_names()));  // 6
  // What can't be removed are remains, which the next opening removes (pool.R3).
  if (old_->leads()) (void)remove_remains(old_->directory(), job_);
  return agree(group_, Status::success());
}

}  // namespace perdure
