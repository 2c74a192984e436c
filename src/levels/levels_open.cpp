// SPDX-License-Identifier: BSD-3-Clause
//
// Levels: opening and restarting.
#include <algorithm>

#include "base/agreement.hpp"
#include "levels/bring_back.hpp"
#include "levels/guard_contents.hpp"
#include "levels/levels.hpp"
#include "levels/manifest.hpp"
#include "levels/recovery_plan.hpp"
#include "levels/restart.hpp"

namespace perdure {
namespace {

// How often a version that the pool holds can be protected anew, each time with one file more
// (levels.K5).
constexpr std::uint64_t protections_max = 16;

}  // namespace

Result<std::unique_ptr<Pool>> Levels::open(const OpenOptions& given) {
  OpenOptions options = given;
  options.pool.incarnations_of_taker = protections_max;
  std::vector<DrainTarget> targets;
  targets.reserve(drains_.size());
  for (const Drain& drain : drains_) targets.push_back(drain.target);
  leased_.emplace(group_, directory_, std::move(targets),
                  std::chrono::milliseconds(settings_.lease_ns / 1'000'000));
  PERDURE_TRY(leased_->look(options.job_name));
  Restart restart(group_, directory_, trust_, *leased_, settings_.take);
  auto pool = restart.open(options);
  for (const std::string& sentence : restart.sentences()) say(sentence);
  whole_elsewhere_ = restart.whole_elsewhere();
  PERDURE_TRY(pool.status());
  pool_ = pool.value().get();
  if (pool_->is_changing()) return pool;  // changed() starts
  PERDURE_TRY(find_expected(restart.census()));
  PERDURE_TRY(start(*pool.value()));
  return pool;
}

Status Levels::open_files() {
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  PERDURE_TRY_ASSIGN(job_, read_job_record(directory));
  job_.lineage = pool_->lineage();
  for (std::uint32_t i = 0; i < level_files_max; ++i) {
    PERDURE_TRY_ASSIGN(auto image, LevelFile::open_or_make(
                                       directory, {SealedKind::image, group_.rank(), i}, trust_));
    PERDURE_TRY_ASSIGN(auto guard, LevelFile::open_or_make(
                                       directory, {SealedKind::guard, group_.rank(), i}, trust_));
    images_.push_back(std::move(image));
    guards_.push_back(std::move(guard));
  }
  active_ = true;
  return Status::success();
}

// The newest version that is whole on all ranks, as the files say.
Status Levels::find_whole() {
  const auto ids = whole_versions(images_, guards_, job_, members_);
  const VersionId newest = ids.empty() ? VersionId{} : std::ranges::max(ids);
  std::uint64_t words[] = {~newest.incarnation};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  VersionId common{~words[0], 0};
  for (const VersionId id : ids) {
    if (id.incarnation == common.incarnation) common = std::max(common, id);
  }
  words[0] = ~common.version;
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  common.version = ~words[0];
  const bool here = std::ranges::find(ids, common) != ids.end();
  words[0] = here && common.version > 0 ? 0 : 1;
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  if (words[0] == 0) whole_ = common;
  return Status::success();
}

// levels.K3. Local. The lowest rank of a node clears what is there of ranks that are elsewhere, and
// of all as long as they have not opened their own.
Status Levels::give_up_newer(std::uint64_t held) {
  for (auto* files : {&images_, &guards_}) {
    for (LevelFile& file : *files) {
      if (file.whole() && file.header().id.version > held) PERDURE_TRY(file.clear());
    }
  }
  if (whole_ && whole_->version > held) whole_.reset();
  const std::uint32_t node = nodes_[group_.rank()];
  if (std::ranges::find(nodes_, node) - nodes_.begin() != group_.rank()) return Status::success();
  const auto is_closed = [&](std::uint32_t rank) {
    return images_.empty() || rank >= nodes_.size() || nodes_[rank] != node;
  };
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  return clear_newer(directory, trust_, pool_->job_id(), held, is_closed);
}

// levels.K3. Local.
Status Levels::abandon_drained(VersionId held, std::uint64_t incarnation_max) const {
  for (const Drain& drain : drains_) {
    if (group_.rank() != 0) continue;
    PERDURE_TRY(abandon_versions(place_of_pool(drain.target.directory, directory_),
                                 lineage_of(job_), held, incarnation_max));
  }
  return Status::success();
}

// [collective]
Status Levels::start_files() {
  PERDURE_TRY(agree(group_, remove_of_others()));
  PERDURE_TRY(agree(group_, open_files()));
  PERDURE_TRY(take_leases());
  start_drains();
  return Status::success();
}

// other_ranks.hpp, levels.O1. Images and guards on this node of other numbers of ranks: the pool
// has gone on without them. Of several nodes with one directory whichever comes first removes them.
Status Levels::remove_of_others() const {
  const std::uint32_t node = nodes_[group_.rank()];
  if (std::ranges::find(nodes_, node) - nodes_.begin() != group_.rank()) return Status::success();
  PERDURE_TRY_ASSIGN(const auto directory, Directory::open(directory_, trust_));
  PERDURE_TRY_ASSIGN(const auto names, directory.names());
  for (const std::string& name : names) {
    const auto parsed = parse_level_file_name(name);
    if (!parsed) continue;
    const auto file = LevelFile::open(directory, *parsed, trust_, true);
    if (!file.ok()) continue;
    bool of_others = parsed->rank >= group_.ranks();
    if (file.value().whole()) {
      const JobRecord& job = file.value().header().job;
      of_others = job.job_id == pool_->job_id() && job.ranks != group_.ranks();
    }
    if (of_others) PERDURE_TRY(directory.remove_file(name));
  }
  return Status::success();
}

// The version is protected before its commit returns: nothing else on these nodes is.
Status Levels::changed(const Catalogue& newest) {
  if (members_.empty() && drains_.empty()) return Status::success();
  PERDURE_TRY(start_files());
  thread_ = std::thread([this] { work(); });
  if (members_.empty()) {
    committed(newest);
    return Status::success();
  }
  return protect(newest, newest.incarnation);
}

Status Levels::start(Pool& pool) {
  pool_ = &pool;
  const PoolStatus status = pool.status();
  if (status.version > 0 && (pool.went_back() || !status.fell_back)) {
    PERDURE_TRY(agree(group_, give_up_newer(status.version)));
  }
  if (members_.empty() && drains_.empty()) return Status::success();
  PERDURE_TRY(start_files());
  if (pool.went_back()) {
    PERDURE_TRY(agree(group_, abandon_drained(id_of(pool.chosen()), pool.incarnation() - 1)));
  }
  PERDURE_TRY(find_whole());
  thread_ = std::thread([this] { work(); });
  // What was lost, or moved so that its redundancy lies elsewhere, is protected before anything
  // else is done.
  const bool covered = whole_ && (!pool.went_back() || whole_->version == status.version);
  if (covered || status.version == 0 || status.fell_back) return Status::success();
  PERDURE_TRY(keep_sources());
  unprotected_ = !expected_.empty();
  if (unprotected_) return Status::success();
  PERDURE_TRY(protect(pool.chosen(), free_incarnation(pool.chosen())));
  source_.reset();
  return Status::success();
}

// [collective] levels.K2: until a version is protected, what it was brought back from, or would be,
// stays.
Status Levels::keep_sources() {
  PERDURE_TRY_ASSIGN(const Census census, leased_->census(trust_));
  if (const auto plan = plan_recovery(census)) source_ = plan->id;
  whole_ = best_guarded(census);
  return Status::success();
}

// [collective] The same on all ranks: their images have the same files, and all know the census.
Status Levels::find_expected(const Census& census) {
  std::uint64_t words[] = {pool_->of_image() ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  if (words[0] == 0) {
    const PoolVersion chosen{{}, pool_->chosen().version, pool_->chosen().incarnation, 0};
    for (const PartFileFact& fact : census.parts) {
      if (fact.part.in_use && is_of_line(fact.part, chosen)) expected_.insert(fact.part.path);
    }
    return Status::success();
  }
  BringBack back(group_, directory_, trust_);
  PERDURE_TRY_ASSIGN(behind_, back.image_behind(*pool_));
  const auto read = [&]() -> Status {
    PERDURE_TRY_ASSIGN(auto image, back.own_image(*behind_));
    held_.emplace(std::move(image));
    PERDURE_TRY_ASSIGN(const auto contents, parse_image(held_->payload()));
    for (const auto& [name, share] : contents.shares) expected_.insert(name);
    return Status::success();
  };
  return agree(group_, read());
}

// Of an image of a version that the pool holds, so that it counts as newer than what was given up
// before, also on a node that is away, and than images of the version that this life took before:
// two images of one id would be taken for one another. 0: there is none left.
std::uint64_t Levels::free_incarnation(const Catalogue& catalogue) const {
  const std::uint64_t own = pool_->incarnation();
  if (catalogue.incarnation == own) return taken_last_ == id_of(catalogue) ? 0 : own;
  const std::uint64_t next = std::max(own - protections_max, protected_as_ + 1);
  return next < own ? next : 0;
}

// [collective] Gives a version that the pool holds to other nodes, before anything else is done.
Status Levels::protect(const Catalogue& catalogue, std::uint64_t incarnation) {
  if (members_.empty()) return Status::success();
  Catalogue again = catalogue;
  again.incarnation = protected_as_ = incarnation;
  take(again);
  finish_under_way();
  std::uint64_t words[] = {phase() == Phase::whole ? 0U : 1U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  end_taking(words[0] == 0);
  const std::string version = "version " + std::to_string(again.version);
  if (words[0] == 0) {
    say(sentence(version, " can be lost on ", losses_, (losses_ == 1 ? " node" : " nodes"),
                 " of each failure group again"));
  } else {
    stop_redundancy(version + " could not be given to other nodes");
  }
  return Status::success();
}

}  // namespace perdure
