// SPDX-License-Identifier: BSD-3-Clause
//
// Pool: restarting from a version, restoring another one, deleting one.
#include <algorithm>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "pool/copy_check.hpp"
#include "pool/pool.hpp"

namespace perdure {

Status Pool::verify_arrays(const Catalogue& catalogue) const {
  for (const ArrayEntry& entry : catalogue.arrays) {
    if (entry.shape.mode == ArrayMode::flush) continue;
    PERDURE_TRY(
        located(verify_and_copy(*device_, entry, region_.geometry.block_bytes, nullptr, nullptr)));
  }
  return Status::success();
}

Status Pool::check_chosen(bool asked) const {
  const Choice& choice = kept_.chosen().choice;
  return asked || choice.weak || choice.fell_back ? verify_arrays(chosen()) : Status::success();
}

// [collective] From here on the chosen version is the newest, on all ranks.
Status Pool::make_recovered_newest(const std::function<Status()>& when_newest) {
  PERDURE_TRY(life_.must(kept_.settle(group_, when_newest)));
  life_.note_restarted();
  return Status::success();
}

Result<std::uint64_t> Pool::restart() {
  auto version = change_ && change_->old().version() != 0 ? restart_changed() : restart_now();
  if (version.ok()) return version;
  run_page_.set_refused(version.status());
  if (restarted()) return version;
  for (auto& [number, open] : next_.arrays()) open.array->undo_start();
  return version;
}

Status Pool::check_first_restart() const {
  PERDURE_TRY(check_usable());
  if (!restarted()) return Status::success();
  return {Code::wrong_state, "perdure_restart() was called before"};
}

Result<std::uint64_t> Pool::restart_now() {
  const CollectiveCall call(group_, "perdure_restart");
  const std::uint64_t start_ns = monotonic_ns();
  run_page_.set_phase(RunPhase::restarting);
  Status local = check_first_restart();
  if (local.ok()) local = check_chosen();
  // Loading may store over what newer versions have here. If R is damaged on a rank, they stay.
  if (kept_.chosen().choice.fell_back) PERDURE_TRY(agree(group_, local));
  if (local.ok()) local = make_room_for_catalogue();
  if (local.ok()) local = load_all();
  if (local.ok()) local = next_.files().check(chosen());
  PERDURE_TRY(agree(group_, local));
  PERDURE_TRY(make_recovered_newest([this] { return next_.files().cut(chosen()); }));
  next_.scalars().load();
  note_restarted(start_ns);
  return status_.version;
}

void Pool::note_restarted(std::uint64_t start_ns) {
  device_->touch_pages();  // of a file that another number of ranks has made
  status_.restart_ns = monotonic_ns() - start_ns;
  run_page_.set_restored(status_.version, next_.iteration(), status_.restart_ns);
  run_page_.set_phase(RunPhase::computing);
}

std::vector<VersionInfo> Pool::versions() const {
  if (!change_) return retained().versions(head(), open_slot_index());
  const OldRanks& old = change_->old();  // of its versions the newest is taken over
  if (old.version() == 0) return {};
  return {{old.version(), old.catalogue(0).parent, old.committed_ns(), false}};
}

Status Pool::check_held(std::uint64_t version) const {
  const auto list = versions();
  for (const VersionInfo& info : list) {
    if (info.version == version) return Status::success();
  }
  return Status(Code::not_found, "the pool holds no version ", version, " of all ranks; it holds ",
                (list.empty() ? "none" : listed(list, &VersionInfo::version)));
}

Result<ArrayTable> Pool::arrays_of(std::uint64_t version) const {
  if (version == 0) return next_.catalogue().arrays;
  PERDURE_TRY(check_held(version));
  if (change_ && !change_->keeps_version())
    return next_.catalogue().arrays;  // there is no other version
  return retained().arrays_of(version);
}

// All that can go wrong with a version goes wrong here, before anything is changed.
Result<Catalogue> Pool::check_restorable(std::uint64_t version) const {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(check_held(version));
  PERDURE_TRY_ASSIGN(Catalogue target, kept_.read(version));
  if (next_.version() - 1 - version > back_max) {
    return Status(Code::damaged, "version ", version, " is too old for version ", next_.version(),
                  " to be made from it; the slots were damaged");
  }
  PERDURE_TRY(next_.check_fits(target));
  PERDURE_TRY(verify_arrays(target));
  if (!restarted()) PERDURE_TRY(check_chosen());
  target.arrays = retained().arrays_of(version);  // with their extents and pages
  return target;
}

Status Pool::restore(std::uint64_t version) {
  const CollectiveCall call(group_, "perdure_restore");
  if (commit_pending()) PERDURE_TRY(commit_wait().status());
  const std::uint64_t start_ns = monotonic_ns();
  Status may = check_changing();
  if (may.ok()) may = check_alone("can't be brought to another version");
  PERDURE_TRY(agree(group_, may, {About::restored, version}));
  const auto target = check_restorable(version);
  PERDURE_TRY(agree(group_, target.ok() ? next_.files().check(target.value()) : target.status()));
  run_page_.set_phase(RunPhase::restarting);
  // First what any restart would do, so that a version that some rank had completed alone is gone.
  if (!restarted()) PERDURE_TRY(make_recovered_newest([] { return Status::success(); }));
  next_.adopt(target.value(), retained(), next_.incarnation() + 1 + options_.incarnations_of_taker);
  // One store on each rank; the pool stays usable only if all did it (commit.cpp, pool.I7).
  Status local = options_.taker != nullptr
                     ? options_.taker->restoring(target.value(), next_.incarnation() - 1)
                     : Status::success();
  if (local.ok()) local = kept_.reopen_next(next_.catalogue(), target.value());
  if (local.ok()) local = make_room_for_catalogue();
  if (local.ok()) local = load_all();
  if (local.ok()) local = next_.files().cut(target.value());
  PERDURE_TRY(life_.must(agree(group_, local)));
  if (options_.taker != nullptr) PERDURE_TRY(options_.taker->restored(target.value()));
  next_.scalars().load();
  status_.version = version;
  status_.restart_ns = monotonic_ns() - start_ns;
  run_page_.set_restored(version, next_.iteration(), status_.restart_ns);
  run_page_.set_phase(RunPhase::computing);
  return Status::success();
}

Status Pool::delete_version(std::uint64_t version) {
  const CollectiveCall call(group_, "perdure_delete_version");
  if (commit_pending()) PERDURE_TRY(commit_wait().status());
  Status local = check_usable();
  if (local.ok() && !restarted()) {
    local = Status(Code::wrong_state, "a version can be deleted after perdure_restart()");
  }
  if (local.ok()) local = check_changing();
  if (local.ok()) local = check_held(version);
  if (local.ok() && version == head()) {
    local = Status(Code::wrong_state, "version ", version,
                   " is the newest one and can't be deleted; restore another one first");
  }
  PERDURE_TRY(agree(group_, local, {About::deleted, version}));
  if (options_.taker != nullptr) options_.taker->release(version);
  // After a failure some rank may have it and some not: only recovery can tell.
  return life_.must(kept_.remove(group_, version));
}

}  // namespace perdure
