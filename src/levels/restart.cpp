// SPDX-License-Identifier: BSD-3-Clause
#include "levels/restart.hpp"

#include <algorithm>

#include "base/agreement.hpp"

namespace perdure {
namespace {

// Code of a refusal after which other levels are asked.
bool lost_something(Code code) {
  return code == Code::damaged || code == Code::not_found || code == Code::foreign;
}

// levels.A8: of a file that a restart would use, or "".
std::string damage_in(const Census& census) {
  const auto files = census.files_in_use();
  for (const DamagedFileFact& damaged : census.damaged) {
    const PoolFileFact* const used = damaged.rank < files.size() ? files[damaged.rank] : nullptr;
    if (used != nullptr && used->at != damaged.at) continue;  // what was left behind
    return sentence("rank ", damaged.rank, ": ", damaged.problem);
  }
  return "";
}

}  // namespace

Result<std::unique_ptr<Pool>> Restart::open(const OpenOptions& given) {
  OpenOptions options = given;
  PERDURE_TRY_ASSIGN(const JobId drawn, fresh_lineage());
  back_.number_with(drawn.words[0] >> (64 - BringBack::chance_bits));
  back_.wait_for_locks(options.lock_wait_ms);
  other_ranks_.accept(options.any_ranks, options.lock_wait_ms);
  if (options.discard) {
    PERDURE_TRY(leased_.clear(nullptr));
  } else {
    PERDURE_TRY(settle_records(group_, directory_, trust_, options.lock_wait_ms));
    PERDURE_TRY_ASSIGN(const std::string brought, fetch_files(options));
    if (!brought.empty()) sentences_.push_back(brought);
  }
  const bool ours = census_.job.ranks == group_.ranks();
  options.discard = options.discard || other_ranks_.makes_anew();
  PERDURE_TRY_ASSIGN(options.pool.incarnation_min, back_.new_generation(census_));
  auto pool = open_whole(options);
  if (census_.files.empty() || !ours || other_ranks_.divides())
    return pool;  // nobody knew of one of these ranks
  std::uint64_t words[] = {!pool.ok() && lost_something(pool.status().code()) ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  if (words[0] != 0) return open_older(options, pool.status());
  return pool.ok() ? open_newest(options, pool.take()) : std::move(pool);
}

// A pool that says of the version that it holds whether it is whole, before other levels give way.
Result<std::unique_ptr<Pool>> Restart::open_whole(const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto pool, open_found(options));
  const Status own = pool->check_chosen(options.pool.allow_older);
  const Status whole = agree(group_, own);
  data_damaged_ = !whole.ok();
  if (!own.ok()) back_.keep_damaged(true);
  PERDURE_TRY(whole);
  PERDURE_TRY(check_parts(*pool));
  return pool;
}

Result<std::unique_ptr<Pool>> Restart::open_found(const OpenOptions& options) {
  if (!other_ranks_.divides()) return open_pool(directory_, group_, options);
  OpenOptions with = options;
  PERDURE_TRY_ASSIGN(with.pool.incarnation_min,
                     back_.new_generation(census_, other_ranks_.incarnation_max()));
  PERDURE_TRY_ASSIGN(auto version, other_ranks_.take_old_version());
  return open_pool_of(directory_, group_, with, std::move(version));
}

// levels.K5.
Status Restart::check_parts(const Pool& pool) const {
  if (pool.is_changing()) return Status::success();
  std::uint64_t words[] = {pool.of_image() ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  if (words[0] != 0) return BringBack(group_, directory_, trust_).image_behind(pool).status();
  PoolVersion version;
  std::copy_n(pool.job_id().words, 2, version.job);
  version.version = pool.chosen().version;
  version.incarnation = pool.chosen().incarnation;
  const std::string missing =
      missing_parts(census_.parts_where([](std::uint32_t) { return true; }), version);
  if (missing.empty()) return Status::success();
  return Status(Code::not_found, "version ", version.version, " can't be had: ", missing);
}

// Puts every rank's file on its node, whatever version it holds. Says what was done.
Result<std::string> Restart::fetch_files(const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(const bool here, back_.exists());
  if (!here) {
    PERDURE_TRY(agree(group_, check_drains_known()));
    PERDURE_TRY(leased_.clear(nullptr));
    PERDURE_TRY_ASSIGN(std::string brought, use_drained(nullptr, {}));
    if (!brought.empty()) return brought;
    PERDURE_TRY(leased_.take_for_now(options.job_name));
    return use_drained(nullptr, {});
  }
  PERDURE_TRY_ASSIGN(auto census, leased_.census(trust_));
  const bool right_job = options.any_job || census.job.job_name == options.job_name;
  if (census.job.ranks != group_.ranks() && right_job && other_ranks_.are_accepted()) {
    return change_ranks();
  }
  const bool ours = census.job.ranks == group_.ranks() && right_job;
  if (!ours) return std::string();  // open_pool() says what is wrong
  census_ = std::move(census);
  if (take_) {
    PERDURE_TRY_ASSIGN(std::string taken, take_asked(census_));
    if (!taken.empty()) return taken;
  }
  const auto is_own = [this](const DamagedFileFact& file) {
    return file.rank == group_.rank() && census_.near(file.at, file.rank);
  };
  back_.keep_damaged(std::ranges::any_of(census_.damaged, is_own));
  auto moved = back_.move_files(census_);
  if (moved.status().code() != Code::not_found) return moved;
  const std::string damage = damage_in(census_);
  if (!damage.empty()) PERDURE_TRY(check_older(census_, options, {Code::damaged, damage}));
  return bring_back(census_, {});
}

// Without them nobody knows whether the job is a new one.
Status Restart::check_drains_known() const {
  Status problem = leased_.problem();
  if (problem.ok()) return problem;
  return Status(problem.code(), "no node of this job has the pool ", directory_,
                ", and a drain that may have it can't be read: ", problem.message());
}

// levels.K3.
void Restart::note_given_up(const Census& census) {
  const std::uint64_t newest = newest_given_up(census);
  if (newest <= brought_.version) return;
  sentences_.push_back(sentence("files of version ", newest,
                                " on these nodes don't count: a later start went on without them"));
}

void Restart::note(const std::string& sentence) {
  if (std::ranges::find(sentences_, sentence) == sentences_.end()) sentences_.push_back(sentence);
}

// levels.A8, of images and guards that the newest version would be made of.
Status Restart::drop_damaged(Census& census) {
  for (;;) {
    const auto plan = plan_recovery(census);
    if (!plan) return Status::success();
    std::vector<std::uint64_t> damaged(census.levels.size(), 0);
    for (std::size_t i = 0; i < census.levels.size(); ++i) {
      const LevelFileFact& fact = census.levels[i];
      if (fact.at != group_.rank() || !plan->uses(fact)) continue;
      damaged[i] = back_.check(fact).ok() ? 0 : 1;
    }
    PERDURE_TRY(group_.all_max(damaged));
    if (std::ranges::all_of(damaged, [](auto word) { return word == 0; })) return Status::success();
    for (std::size_t i = census.levels.size(); i-- > 0;) {
      if (damaged[i] == 0) continue;
      const LevelFileFact& fact = census.levels[i];
      note(sentence(level_file_name(fact.name.kind, fact.name.rank, fact.name.slot), " on ",
                    census.hosts[fact.at], ", of version ", fact.id.version,
                    ", is damaged and counts as lost"));
      census.levels.erase(census.levels.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

// Of rank 0, less what is damaged (levels.A8).
Result<std::vector<DrainHolds>> Restart::look_into_drains(const Census* nodes) const {
  std::optional<JobLineage> known;
  if (nodes != nullptr) known = {nodes->job.job_id, nodes->lineage()};
  const auto is_damaged = [this](const Manifest& each) {
    return damaged_versions_.contains(each.directory);
  };
  std::vector<DrainHolds> all;
  for (const LeasedDrain& leased : leased_.drains()) {
    DrainHolds& holds = all.emplace_back();
    if (!leased.usable) continue;
    PERDURE_TRY_ASSIGN(holds, look_into_drain(leased.place, leased.newest, known));
    std::erase_if(holds.own.manifests, is_damaged);
    std::erase_if(holds.of_newest.manifests, is_damaged);
  }
  return all;
}

void Restart::note_forks(const LevelChoice& choice, const std::optional<PoolHolds>& pool) {
  const VersionId held = choice.images ? choice.images->id : pool.value_or(PoolHolds{}).id;
  for (const auto& [drain, offer] : choice.forks) note_fork(leased_.drains()[drain], offer, held);
}

// Rank 0 chooses, as it may see more of the drains than others, who then look again. It alone knows
// the forks.
Result<LevelChoice> Restart::choose(const Census* nodes, const std::optional<PoolHolds>& pool) {
  std::vector<DrainHolds> drains;
  Status local;
  if (group_.rank() == 0) {
    auto read = look_into_drains(nodes);
    local = read.status();
    if (read.ok()) drains = read.take();
  }
  auto choice = choose_level({nodes, pool, drains});
  if (local.ok()) local = choice.status();
  std::uint64_t words[6] = {};
  if (choice.ok() && choice.value().level == RestartLevel::drain) {
    const LevelChoice& drained = choice.value();
    words[0] = drained.drain + 1;
    words[1] = drained.id.incarnation;
    words[2] = drained.id.version;
    std::copy_n(drained.lineage.words, 2, words + 3);
  }
  if (choice.ok()) words[5] = choice.value().incarnation_max;
  PERDURE_TRY(agree_max(group_, local, words));
  if (words[0] != 0) {
    LevelChoice& drained = choice.value();
    drained.level = RestartLevel::drain;
    drained.drain = words[0] - 1;
    drained.id = {words[1], words[2]};
    drained.lineage = {{words[3], words[4]}};
  }
  choice.value().incarnation_max = words[5];
  return choice;
}

// The newest version of all levels but the pool, if it counts more than the pool's; empty: there is
// none.
Result<std::string> Restart::bring_back(Census census, const std::optional<PoolHolds>& pool) {
  PERDURE_TRY(drop_damaged(census));
  PERDURE_TRY_ASSIGN(const LevelChoice choice, choose(&census, pool));
  if (choice.images) PERDURE_TRY(leased_.clear(nullptr));  // levels.Y1
  PERDURE_TRY_ASSIGN(auto brought, use_drained(&census, pool));
  if (brought.empty() && (choice.images || !pool)) {
    PERDURE_TRY_ASSIGN(brought, use_images(census, choice.images));
  }
  if (!brought.empty()) note_given_up(census);
  return brought;
}

// In a lineage of its own where there is a drain: the nodes that are away may go on by themselves
// with what they have of these versions.
Result<std::string> Restart::use_images(const Census& census,
                                        const std::optional<RecoveryPlan>& plan) {
  JobRecord job = census.job;
  job.lineage = census.lineage();
  if (plan && leased_.any_usable()) {
    PERDURE_TRY_ASSIGN(Ancestors ancestors, leased_.ancestors_of(job.lineage));
    for (Ancestor& each : ancestors) each.until = std::min(each.until, plan->id);
    ancestors.push_back({job.lineage, plan->id});
    PERDURE_TRY_ASSIGN(job.lineage, fresh_lineage());
    PERDURE_TRY(leased_.take(job, &ancestors));
  }
  if (plan) brought_ = plan->id;
  auto used = back_.use_images(census, job.lineage);
  const Status problem = leased_.problem();
  if (used.status().code() != Code::not_found || problem.ok()) return used;
  return Status(Code::not_found, used.status().message(),
                "; a drain could not be used: ", problem.message());
}

Result<JobId> Restart::fresh_lineage() const {
  JobId fresh;
  if (group_.rank() == 0) fresh = random_job_id();
  PERDURE_TRY(agree_max(group_, Status::success(), fresh.words));
  return fresh;
}

// levels.A6.
void Restart::note_fork(const LeasedDrain& leased, const DrainOffer& offer, VersionId held) {
  const bool drained = *offer.fork != offer.forked_from;
  const std::string has = drained
                              ? sentence(" has version ", offer.fork->version, " of another run")
                              : std::string(" was used by another run");
  const std::string instead = drained
                                  ? sentence("; to go on from the other run's instead, add take=",
                                             job_id_text(offer.fork_lineage), " to PERDURE_LEVELS")
                                  : std::string("; the other run has drained nothing since");
  note(sentence(leased.place, has, " (", leased.newest->text(), "), which went on from version ",
                offer.forked_from.version, " without these nodes; they hold version ", held.version,
                ", which is not part of it and stays", instead));
}

// If a drained version is the choice. levels.Y1: what was found before the other runs were gone is
// looked for again.
Result<std::string> Restart::use_drained(const Census* nodes,
                                         const std::optional<PoolHolds>& pool) {
  PERDURE_TRY_ASSIGN(LevelChoice choice, choose(nodes, pool));
  if (choice.level == RestartLevel::drain) {
    PERDURE_TRY(leased_.clear(nullptr));
    PERDURE_TRY_ASSIGN(choice, choose(nodes, pool));
  }
  note_forks(choice, pool);
  if (choice.level != RestartLevel::drain) return std::string();
  PERDURE_TRY(check_ranks_of(choice));
  PERDURE_TRY_ASSIGN(const JobId fresh, fresh_lineage());
  PERDURE_TRY(begin_lineage(choice, fresh).status());
  for (bool first = true;; first = false) {
    PERDURE_TRY_ASSIGN(LevelChoice again, choose(nodes, pool));  // now that nobody else publishes
    if (again.level != RestartLevel::drain) {
      if (!first) return std::string();
      again = choice;
    }
    PERDURE_TRY_ASSIGN(const Manifest manifest, begin_lineage(again, fresh));
    auto brought = bring_drained(manifest, again.incarnation_max);
    brought_ = manifest.id;
    std::uint64_t words[] = {brought.status().code() == Code::damaged ? 1U : 0U};
    PERDURE_TRY(agree_max(group_, Status::success(), words));
    if (words[0] == 0) return brought;
    damaged_versions_.insert(manifest.directory);  // levels.A8
    note(brought.status().message() + "; it counts as lost");
  }
}

// Before a lease is taken.
Status Restart::check_ranks_of(const LevelChoice& drained) const {
  if (other_ranks_.are_accepted()) return Status::success();
  const std::string& place = leased_.drains()[drained.drain].place;
  const auto found = find_versions(place, drained.lineage);
  Status local = found.status();
  for (const Manifest& each : found.ok() ? found.value().manifests : std::vector<Manifest>()) {
    if (each.id != drained.id || each.job.ranks == group_.ranks()) continue;
    local = Status(Code::rank_mismatch, place, " holds version ", each.id.version, " of ",
                   each.job.ranks, " ranks, this job has ", group_.ranks(), "; start ",
                   each.job.ranks, " ranks, or open the pool with PERDURE_ANY_RANKS");
  }
  return agree(group_, local);
}

Result<std::string> Restart::bring_drained(const Manifest& manifest,
                                           std::uint64_t incarnation_max) {
  if (manifest.job.ranks == group_.ranks()) {
    other_ranks_.unlock();  // they have their own
    return back_.use_drained(manifest, incarnation_max, census_.job);
  }
  return use_other(manifest, incarnation_max);
}

// [collective] levels.A8.
Result<std::string> Restart::use_other(const Manifest& manifest, std::uint64_t incarnation_max) {
  PERDURE_TRY(agree(group_, back_.make_directory()));
  PERDURE_TRY(other_ranks_.lock());
  PERDURE_TRY(other_ranks_.divide(manifest, incarnation_max));
  return sentence("version ", manifest.id.version, " of ", manifest.job.ranks, " ranks, in ",
                  manifest.directory, ", is divided among ", group_.ranks());
}

// The pool on these nodes is of another number of ranks. Empty: all see it, and what counts is in
// its rank files, which open_pool() divides.
Result<std::string> Restart::change_ranks() {
  PERDURE_TRY(other_ranks_.lock());
  PERDURE_TRY_ASSIGN(census_, leased_.census(trust_));
  const std::uint32_t old = census_.job.ranks;
  PERDURE_TRY_ASSIGN(const bool one, see_one_directory(group_, directory_, trust_));
  for (const PartFileFact& fact : census_.parts) {
    if (!fact.part.in_use || one) continue;  // in one directory it is recovered first
    return Status(Code::rank_mismatch, "the pool ", directory_, " was made by ", old,
                  " ranks, and the cached file ", fact.part.path,
                  " is committed with it, whose parts no other number of ranks can gather from "
                  "several directories; start ",
                  old, " ranks, and close the file");
  }
  if (const std::string damage = damage_in(census_); !damage.empty()) {
    return Status(Code::damaged, damage, "; restart ", old,
                  " ranks, which made the pool, before another number of ranks goes on with it");
  }
  PERDURE_TRY(drop_damaged(census_));
  const auto held = held_by_files(census_);
  PERDURE_TRY_ASSIGN(const LevelChoice choice, choose(&census_, held));
  if (choice.level == RestartLevel::drain) return use_drained(&census_, held);
  if (one && choice.level != RestartLevel::nodes) {
    JobRecord own = census_.job;
    own.lineage = census_.lineage();
    PERDURE_TRY(leased_.clear(&own));  // the first commit takes them
    other_ranks_.unlock();
    return std::string();
  }
  if (choice.level != RestartLevel::none) return drain_before(choice);
  const bool empty = census_.levels.empty() && !census_.files.empty() &&
                     std::ranges::all_of(census_.files, [](const PoolFileFact& file) {
                       return file.head.version == 0;
                     });
  if (empty) {
    other_ranks_.make_anew();
    PERDURE_TRY(leased_.clear(nullptr));
    return std::string();
  }
  return Status(Code::not_found, "the pool ", directory_, " was made by ", old,
                " ranks, this job "
                "has ",
                group_.ranks(), ", and no version can be had: ", describe_holdings(census_));
}

// What the nodes hold goes to a drain, which all ranks see, and is divided there.
Result<std::string> Restart::drain_before(const LevelChoice& choice) {
  const auto& drains = leased_.drains();
  const auto usable = std::ranges::find_if(drains, &LeasedDrain::usable);
  if (usable == drains.end()) {
    return Status(Code::rank_mismatch, "the pool ", directory_, " was made by ", census_.job.ranks,
                  " ranks, this job has ", group_.ranks(),
                  ", and they do not see all files of the pool in one directory: add "
                  "drain=DIRECTORY to PERDURE_LEVELS, one that all nodes share, to which they are "
                  "brought, or start ",
                  census_.job.ranks, " ranks");
  }
  const auto place = static_cast<std::size_t>(usable - drains.begin());
  PERDURE_TRY(leased_.clear(nullptr));
  JobRecord job = census_.job;
  job.lineage = census_.lineage();
  PERDURE_TRY(leased_.take(job, nullptr, place));
  std::optional<RecoveryPlan> images;
  if (choice.level == RestartLevel::nodes) images = choice.images;
  PERDURE_TRY(
      drain_held(group_, back_, directory_, trust_, census_, choice.id, images, usable->place));
  LevelChoice drained{RestartLevel::drain, choice.id, lineage_of(job), place, {}};
  PERDURE_TRY_ASSIGN(const JobId fresh, fresh_lineage());
  PERDURE_TRY_ASSIGN(const Manifest manifest, begin_lineage(drained, fresh));
  return use_other(manifest, choice.incarnation_max);
}

// That is to be made of this version, with the lease of it. Called again it says another version.
Result<Manifest> Restart::begin_lineage(const LevelChoice& drained, const JobId& fresh) {
  const std::string& place = leased_.drains()[drained.drain].place;
  auto found = find_versions(place, drained.lineage);
  Manifest* manifest = nullptr;
  if (found.ok()) {
    for (Manifest& each : found.value().manifests) {
      if (each.id == drained.id) manifest = &each;
    }
  }
  const Status local = manifest != nullptr
                           ? Status::success()
                           : Status(Code::not_found, place, " shows this node no version ",
                                    drained.id.version, ", which rank 0 sees there");
  PERDURE_TRY(agree(group_, local));
  const JobId from = lineage_of(manifest->job);
  auto ancestors = read_ancestors(place, from);
  PERDURE_TRY(agree(group_, ancestors.status()));
  ancestors.value().push_back({from, manifest->id});
  manifest->job.lineage = fresh;
  PERDURE_TRY(leased_.take(manifest->job, &ancestors.value(), drained.drain));
  return std::move(*manifest);
}

// The lineage that the user asks for, once: what was made of it has it among its ancestors. Empty:
// so it is.
Result<std::string> Restart::take_asked(const Census& census) {
  LevelChoice best{RestartLevel::drain, {}, *take_, leased_.drains().size(), {}};
  const JobId own = census.lineage();
  bool is_taken = group_.rank() == 0 && own == *take_;
  Status local;
  for (std::size_t i = 0; group_.rank() == 0 && local.ok() && i < leased_.drains().size(); ++i) {
    const LeasedDrain& leased = leased_.drains()[i];
    const auto ancestors = read_ancestors(leased.place, own);
    const auto found = find_versions(leased.place, take_);
    local = ancestors.ok() ? found.status() : ancestors.status();
    if (!local.ok()) break;
    is_taken = is_taken || std::ranges::find(ancestors.value(), *take_, &Ancestor::lineage) !=
                               ancestors.value().end();
    best.incarnation_max = std::max(best.incarnation_max, found.value().incarnation_max);
    if (found.value().manifests.empty() || !(best.id < found.value().manifests.front().id)) {
      continue;
    }
    best.id = found.value().manifests.front().id;
    best.drain = i;
  }
  if (local.ok() && group_.rank() == 0 && !is_taken && best.id.version == 0) {
    local = Status(Code::not_found, "take=", job_id_text(*take_),
                   " of PERDURE_LEVELS: no drain of this run has versions of that lineage");
  }
  std::uint64_t words[] = {is_taken ? 1U : 0U, group_.rank() == 0 ? best.drain : 0,
                           best.incarnation_max, best.id.incarnation, best.id.version};
  PERDURE_TRY(agree_max(group_, local, words));
  if (words[0] != 0) return std::string();
  PERDURE_TRY(leased_.clear(nullptr));
  best.drain = words[1];
  best.incarnation_max = words[2];
  best.id = {words[3], words[4]};
  PERDURE_TRY_ASSIGN(const JobId fresh, fresh_lineage());
  PERDURE_TRY_ASSIGN(const Manifest manifest, begin_lineage(best, fresh));
  return bring_drained(manifest, best.incarnation_max);
}

// levels.A1, levels.K3.
Result<std::unique_ptr<Pool>> Restart::open_newest(const OpenOptions& options,
                                                   std::unique_ptr<Pool> pool) {
  PERDURE_TRY_ASSIGN(const Census census, leased_.census(trust_));
  std::optional<PoolHolds> held;
  if (pool->chosen().version > 0) {
    held = {id_of(pool->chosen()), pool->went_back() && !pool->status().fell_back};
  }
  PERDURE_TRY_ASSIGN(const LevelChoice choice, choose(&census, held));
  note_forks(choice, held);
  PERDURE_TRY_ASSIGN(const Elsewhere other, find_elsewhere(census));
  if (other.id.version > 0) {
    whole_elsewhere_ = sentence("; version ", other.id.version, " is whole ", other.where,
                                ": start with PERDURE_ALLOW_OLDER to go back to it");
  }
  if (choice.level != RestartLevel::nodes && choice.level != RestartLevel::drain) return pool;
  pool.reset();
  const auto brought = bring_back(census, held);
  if (brought.ok() && brought.value().empty()) return open_found(options);
  sentences_.push_back(brought.ok() ? sentence(brought.value(), "; the pool held version ",
                                               held.value_or(PoolHolds{}).id.version)
                                    : "a version that is newer than the pool's can't be had: " +
                                          brought.status().message());
  return open_found(options);
}

// What levels have beside the ranks' files.
Result<Restart::Elsewhere> Restart::find_elsewhere(const Census& census) {
  PERDURE_TRY_ASSIGN(const LevelChoice other, choose(&census, {}));
  if (other.level == RestartLevel::none) return Elsewhere{};
  if (other.level == RestartLevel::nodes) return Elsewhere{other.id, "in images on the nodes"};
  return Elsewhere{other.id, "in " + leased_.drains()[other.drain].place};
}

// levels.A8.
Status Restart::check_older(Census census, const OpenOptions& options, const Status& damage) {
  PERDURE_TRY(drop_damaged(census));
  PERDURE_TRY_ASSIGN(const Elsewhere other, find_elsewhere(census));
  std::uint64_t newest = 0;
  for (const PoolFileFact& file : census.files) newest = std::max(newest, file.head.version);
  if (newest > 0 && other.id.version >= newest) return Status::success();
  const std::string given_up = newest == 0
                                   ? std::string("whatever was committed after it")
                                   : sentence("versions ", other.id.version + 1, " to ", newest);
  if (options.pool.allow_older) {
    sentences_.push_back(sentence(damage.message(),
                                  "; an older version was asked for: it gives up ", given_up,
                                  ", or less, and a damaged file that is replaced is kept as "
                                  "rank-NNNNN.damaged"));
    return Status::success();
  }
  if (other.id.version == 0) return damage;
  return Status(
      Code::damaged, damage.message(), "; version ", other.id.version, " is whole ", other.where,
      ": start with PERDURE_ALLOW_OLDER to go back to it, or to a newer one that the ranks' "
      "files still have, which gives up ",
      given_up, ", or less, and keeps a damaged file that is replaced as rank-NNNNN.damaged");
}

// A pool that recovery refuses: what is newer counts, a version that the ranks' files still hold,
// or one of other levels.
Result<std::unique_ptr<Pool>> Restart::open_older(const OpenOptions& options,
                                                  const Status& refused) {
  const auto census = leased_.census(trust_);
  if (!census.ok() || census.value().job.ranks != group_.ranks()) return refused;
  const std::string damage = damage_in(census.value());
  if (!damage.empty() || data_damaged_) {
    PERDURE_TRY(check_older(census.value(), options,
                            {Code::damaged, damage.empty() ? refused.message() : damage}));
  }
  OpenOptions older = options;
  older.pool.allow_older = true;
  auto pool = open_whole(older);
  std::optional<PoolHolds> held;
  if (pool.ok() && pool.value()->chosen().version > 0) held = {id_of(pool.value()->chosen())};
  if (pool.ok()) pool.value().reset();
  const auto brought = bring_back(census.value(), held);
  if (brought.status().code() == Code::not_found && !held) {
    return Status(refused.code(), refused.message(), "; ", brought.status().message());
  }
  if (brought.ok() && !brought.value().empty()) {
    sentences_.push_back(brought.value() + ", because " + refused.message());
    return open_found(options);
  }
  if (!held) return brought.status();
  sentences_.push_back("version " + std::to_string(held->id.version) +
                       " is the newest that is whole on all ranks; newer ones are damaged (" +
                       refused.message() + ")");
  return open_pool(directory_, group_, older);
}

}  // namespace perdure
