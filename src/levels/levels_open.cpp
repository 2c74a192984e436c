// SPDX-License-Identifier: BSD-3-Clause
//
// Levels: opening and restarting.
#include <algorithm>

#include "base/agreement.hpp"
#include "levels/bring_back.hpp"
#include "levels/levels.hpp"
#include "levels/recovery_plan.hpp"
#include "levels/restart.hpp"

namespace perdure {

Result<std::unique_ptr<Pool>> Levels::open(const OpenOptions& given) {
  OpenOptions options = given;
  options.pool.incarnations_of_taker = ImageIncarnations::protections_max;
  PERDURE_TRY(drains_.look(options.job_name));
  Restart restart(node_.group, node_.directory, node_.trust, drains_.leased(), settings_.take);
  auto pool = restart.open(options);
  for (const std::string& sentence : restart.sentences()) node_.say(sentence);
  whole_elsewhere_ = restart.whole_elsewhere();
  PERDURE_TRY(pool.status());
  pool_ = pool.value().get();
  if (pool_->is_changing()) return pool;  // changed() starts
  PERDURE_TRY(find_expected(restart.census()));
  PERDURE_TRY(start(*pool.value()));
  return pool;
}

// The newest version that is whole on all ranks, as the files say.
Status Levels::find_whole() {
  const auto ids = files_.whole(replication_.members());
  const VersionId newest = ids.empty() ? VersionId{} : std::ranges::max(ids);
  std::uint64_t words[] = {~newest.incarnation};
  PERDURE_TRY(agree_max(node_.group, Status::success(), words));
  VersionId common{~words[0], 0};
  for (const VersionId id : ids) {
    if (id.incarnation == common.incarnation) common = std::max(common, id);
  }
  words[0] = ~common.version;
  PERDURE_TRY(agree_max(node_.group, Status::success(), words));
  common.version = ~words[0];
  const bool here = std::ranges::find(ids, common) != ids.end();
  PERDURE_TRY_ASSIGN(const bool lacking, is_on_any(node_.group, !here || common.version == 0));
  if (!lacking) agreed_.whole = common;
  return Status::success();
}

// levels.K3. Local.
Status Levels::give_up_newer(std::uint64_t held) {
  if (agreed_.whole && agreed_.whole->version > held) agreed_.whole.reset();
  return files_.give_up_newer(pool_->job_id(), held);
}

// [collective]
Status Levels::start_files() {
  PERDURE_TRY(agree(node_.group, files_.remove_of_others(pool_->job_id())));
  PERDURE_TRY(agree(node_.group, files_.open(pool_->lineage())));
  active_ = true;
  return drains_.start(files_.job());
}

// The version is protected before its commit returns: nothing else on these nodes is.
Status Levels::changed(const Catalogue& newest) {
  if (has_none()) return Status::success();
  PERDURE_TRY(start_files());
  replication_.start_thread();
  if (replication_.members().empty()) {
    committed(newest);
    return Status::success();
  }
  return protect(newest, newest.incarnation);
}

Status Levels::start(Pool& pool) {
  Group& group = node_.group;
  const PoolStatus status = pool.status();
  if (status.version > 0 && (pool.went_back() || !status.fell_back)) {
    PERDURE_TRY(agree(group, give_up_newer(status.version)));
  }
  if (has_none()) return Status::success();
  PERDURE_TRY(start_files());
  if (pool.went_back()) {
    PERDURE_TRY(
        agree(group, drains_.abandon(files_.job(), id_of(pool.chosen()), pool.incarnation() - 1)));
  }
  PERDURE_TRY(find_whole());
  replication_.start_thread();
  // What was lost, or moved so that its redundancy lies elsewhere, is protected before anything
  // else is done.
  const bool covered =
      agreed_.whole && (!pool.went_back() || agreed_.whole->version == status.version);
  if (covered || status.version == 0 || status.fell_back) return Status::success();
  PERDURE_TRY(keep_sources());
  joined_.set_unprotected(joined_.are_awaited());
  if (joined_.is_unprotected()) return Status::success();
  PERDURE_TRY(protect(pool.chosen(), free_incarnation(pool.chosen())));
  agreed_.source.reset();
  return Status::success();
}

// [collective] levels.K2: until a version is protected, what it was brought back from, or would be,
// stays.
Status Levels::keep_sources() {
  PERDURE_TRY_ASSIGN(const Census census, drains_.leased().census(node_.trust));
  if (const auto plan = plan_recovery(census)) agreed_.source = plan->id;
  agreed_.whole = best_guarded(census);
  return Status::success();
}

// [collective] The same on all ranks: their images have the same files, and all know the census.
Status Levels::find_expected(const Census& census) {
  PERDURE_TRY_ASSIGN(const bool of_image, is_on_any(node_.group, pool_->of_image()));
  if (!of_image) {
    const PoolVersion chosen{{}, pool_->chosen().version, pool_->chosen().incarnation, 0};
    for (const PartFileFact& fact : census.parts) {
      if (fact.part.in_use && is_of_line(fact.part, chosen)) joined_.expect(fact.part.path);
    }
    return Status::success();
  }
  BringBack back(node_.group, node_.directory, node_.trust);
  PERDURE_TRY_ASSIGN(const VersionId behind, back.image_behind(*pool_));
  auto image = back.own_image(behind);
  return agree(node_.group, image.ok() ? joined_.expect_those_of(image.take()) : image.status());
}

std::uint64_t Levels::free_incarnation(const Catalogue& catalogue) const {
  return incarnations_.free_for(catalogue, pool_->incarnation());
}

// [collective] Gives a version that the pool holds to other nodes, before anything else is done.
Status Levels::protect(const Catalogue& catalogue, std::uint64_t incarnation) {
  if (replication_.members().empty()) return Status::success();
  Catalogue again = catalogue;
  again.incarnation = incarnation;
  incarnations_.note_protected(id_of(again));
  take(again, false);
  replication_.finish(settings_.patience_ns);
  PERDURE_TRY_ASSIGN(const bool failed,
                     is_on_any(node_.group, replication_.phase() != Phase::whole));
  end_taking(!failed);
  const std::string version = "version " + std::to_string(again.version);
  if (failed) {
    stop_redundancy(version + " could not be given to other nodes");
    return Status::success();
  }
  const std::uint32_t losses = replication_.losses();
  node_.say(sentence(version, " can be lost on ", losses, (losses == 1 ? " node" : " nodes"),
                     " of each failure group again"));
  return Status::success();
}

}  // namespace perdure
