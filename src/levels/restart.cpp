// SPDX-License-Identifier: BSD-3-Clause
#include "levels/restart.hpp"

#include <algorithm>

#include "base/agreement.hpp"
#include "levels/bring_back.hpp"

namespace perdure {
namespace {

// Code of a refusal after which other levels are asked.
bool lost_something(Code code) {
  return code == Code::damaged || code == Code::not_found || code == Code::foreign;
}

}  // namespace

Result<std::unique_ptr<Pool>> Restart::open(const OpenOptions& given) {
  OpenOptions options = given;
  job_name_ = options.job_name;
  if (!options.discard) {
    PERDURE_TRY_ASSIGN(const std::string brought, fetch_files(options));
    if (!brought.empty()) sentences_.push_back(brought);
  }
  PERDURE_TRY_ASSIGN(options.pool.incarnation_min,
                     BringBack(group_, directory_, trust_).new_generation(census_));
  auto pool = open_whole(options);
  if (census_.files.empty()) return pool;  // nobody knew of one
  std::uint64_t words[] = {!pool.ok() && lost_something(pool.status().code()) ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, Status::success(), words));
  if (words[0] != 0) return open_older(options, pool.status());
  return pool.ok() ? open_newest(options, pool.take()) : std::move(pool);
}

// A pool that says of the version that it holds whether it is whole, before other levels give way.
Result<std::unique_ptr<Pool>> Restart::open_whole(const OpenOptions& options) {
  PERDURE_TRY_ASSIGN(auto pool, open_pool(directory_, group_, options));
  PERDURE_TRY(agree(group_, pool->check_chosen()));
  PERDURE_TRY(check_parts(*pool));
  return pool;
}

// A5.
Status Restart::check_parts(const Pool& pool) const {
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
  BringBack back(group_, directory_, trust_);
  PERDURE_TRY_ASSIGN(const bool here, back.exists());
  if (!here) {
    PERDURE_TRY_ASSIGN(const auto drained, find_drained({}));
    return drained ? use_drained(*drained) : std::string();
  }
  PERDURE_TRY_ASSIGN(auto census, take_census(group_, directory_, trust_));
  const bool ours = census.job.ranks == group_.ranks() &&
                    (options.any_job || census.job.job_name == options.job_name);
  if (!ours) return std::string();  // open_pool() says what is wrong
  census_ = std::move(census);
  auto moved = back.move_files(census_);
  return moved.status().code() == Code::not_found ? bring_back(census_, {}) : std::move(moved);
}

// A1, A4. Whether images of this version count more than the pool, which holds `held`.
bool Restart::counts(const Census& census, const std::optional<RecoveryPlan>& plan,
                     VersionId held) const {
  if (!plan || plan->id <= held) return false;
  if (is_newer(plan->id, held)) return true;
  for (std::uint32_t rank = 0; rank < census.job.ranks; ++rank) {
    const PoolFileFact* const file = census.file_of(rank);
    if (file != nullptr && file->head.version > held.version) return true;
  }
  return false;
}

// The newest version of all levels but the pool, if it counts more than `held`; empty: there is
// none. Of equal ones that of the nodes.
Result<std::string> Restart::bring_back(const Census& census, VersionId held) {
  const auto plan = plan_recovery(census);
  const bool images = counts(census, plan, held);
  PERDURE_TRY_ASSIGN(const auto drained, find_drained(images ? plan->id : held));
  if (drained) return use_drained(*drained);
  if (!images && held.version > 0) return std::string();
  return BringBack(group_, directory_, trust_).use_images(census);
}

// Of this pool's job or, if nobody has the pool, of the one that the place knows by its name.
Result<FoundVersions> Restart::versions_on(const DrainTarget& target) const {
  const std::string place = place_of_pool(target.directory, directory_);
  auto noted = noted_job(place, job_name_);
  if (noted.status().code() == Code::not_found) return FoundVersions{};
  PERDURE_TRY(noted.status());
  const JobRecord& job = noted.value();
  if (!census_.files.empty() && job.job_id != census_.job.job_id) return FoundVersions{};
  if (job.ranks == group_.ranks()) return find_versions(place, job.job_id);
  return Status(Code::rank_mismatch, place, " holds versions of ", job.ranks,
                " ranks, this job has ", group_.ranks());
}

// The newest version that was drained, if it is newer than `held`. Rank 0 chooses, as it may see
// more of the directory than others, who then look again.
Result<std::optional<Restart::Drained>> Restart::find_drained(VersionId held) {
  Drained best{drains_.size(), held, 0};
  Status local;
  for (std::size_t i = 0; group_.rank() == 0 && local.ok() && i < drains_.size(); ++i) {
    const auto found = versions_on(drains_[i]);
    local = found.status();
    if (!found.ok() || found.value().manifests.empty()) continue;
    best.incarnation_max = std::max(best.incarnation_max, found.value().incarnation_max);
    const VersionId newest = found.value().manifests.front().id;
    if (!is_newer(newest, best.id)) continue;
    best.id = newest;
    best.drain = i;
  }
  const bool found = best.drain < drains_.size();
  std::uint64_t words[] = {found ? best.drain + 1 : 0, best.incarnation_max,
                           found ? best.id.incarnation : 0, found ? best.id.version : 0};
  PERDURE_TRY(agree_max(group_, local, words));
  if (words[0] == 0) return std::optional<Drained>();
  return std::optional<Drained>({words[0] - 1, {words[2], words[3]}, words[1]});
}

Result<std::string> Restart::use_drained(const Drained& drained) {
  const DrainTarget& target = drains_[drained.drain];
  const auto found = versions_on(target);
  const Manifest* manifest = nullptr;
  if (found.ok()) {
    for (const Manifest& each : found.value().manifests) {
      if (each.id == drained.id) manifest = &each;
    }
  }
  const Status local =
      manifest != nullptr
          ? Status::success()
          : Status(Code::not_found, place_of_pool(target.directory, directory_),
                   " shows this node no version ", drained.id.version, ", which rank 0 sees there");
  PERDURE_TRY(agree(group_, local));
  return BringBack(group_, directory_, trust_).use_drained(*manifest, drained.incarnation_max);
}

// A1, A2.
Result<std::unique_ptr<Pool>> Restart::open_newest(const OpenOptions& options,
                                                   std::unique_ptr<Pool> pool) {
  if (pool->went_back() && !pool->status().fell_back) return pool;
  PERDURE_TRY_ASSIGN(const Census census, take_census(group_, directory_, trust_));
  const VersionId held = id_of(pool->chosen());
  const auto plan = plan_recovery(census);
  const bool images = counts(census, plan, held);
  PERDURE_TRY_ASSIGN(const auto drained, find_drained(images ? plan->id : held));
  if (!images && !drained) return pool;
  pool.reset();
  const auto brought = bring_back(census, held);
  sentences_.push_back(
      brought.ok()
          ? brought.value() + "; the pool held version " + std::to_string(held.version)
          : "a version that is newer than the pool's can't be had: " + brought.status().message());
  return open_pool(directory_, group_, options);
}

// A pool that recovery refuses: what is newer counts, a version that the ranks' files still hold,
// or one of other levels.
Result<std::unique_ptr<Pool>> Restart::open_older(const OpenOptions& options,
                                                  const Status& refused) {
  const auto census = take_census(group_, directory_, trust_);
  if (!census.ok() || census.value().job.ranks != group_.ranks()) return refused;
  OpenOptions older = options;
  older.pool.allow_older = true;
  auto pool = open_whole(older);
  const VersionId held = pool.ok() ? id_of(pool.value()->chosen()) : VersionId{};
  if (pool.ok()) pool.value().reset();
  const auto brought = bring_back(census.value(), held);
  if (brought.status().code() == Code::not_found && held.version == 0) return refused;
  if (brought.ok() && !brought.value().empty()) {
    sentences_.push_back(brought.value() + ", because " + refused.message());
    return open_pool(directory_, group_, options);
  }
  if (held.version == 0) return brought.status();
  sentences_.push_back("version " + std::to_string(held.version) +
                       " is the newest that is whole on all ranks; newer ones are damaged (" +
                       refused.message() + ")");
  return open_pool(directory_, group_, older);
}

}  // namespace perdure
