// SPDX-License-Identifier: BSD-3-Clause
//
// Pool: restarting from a version, restoring another one, deleting one.
#include <algorithm>

#include "base/agreement.hpp"
#include "base/clock.hpp"
#include "pmem/flush.hpp"
#include "pool/box_note.hpp"
#include "pool/copy_check.hpp"
#include "pool/pool.hpp"

namespace perdure {

// All that recovery could still choose counts before the restart. A version that some rank lacks is
// none of these, on any rank: settling will delete it (recover.cpp), and whether it is still here
// must not matter to which copies are the working ones (array_copies.hpp, pool.A1).
void Pool::read_retained() {
  for (std::uint32_t slot = 0; slot < recovered_.slots.size(); ++slot) {
    const SlotView& view = recovered_.slots[slot];
    if (!view.state || slots_.slot_of(view.state->version) != slot) continue;
    const StateWord& state = *view.state;
    const bool complete =
        state.state == SlotState::complete && view.body && view.body->version == state.version;
    if (state.state == SlotState::deleted) {
      retained_.drop(state.version, parent_of(state));
    } else if (complete && recovered_.choice.lacking.contains(state.version)) {
      retained_.drop(state.version, view.body->parent);
    } else if (complete) {
      retained_.note(*view.body);
    }
  }
  retained_.note(recovered_.catalogue);
}

// What the versions name is in use, and known.
void Pool::hold_extents() {
  const Geometry& geometry = region_.geometry;
  const std::uint64_t grain = std::min<std::uint64_t>(geometry.align_bytes, cache_line_bytes);
  std::vector<Extent> used;
  std::vector<ArrayEntry*> entries;
  std::unordered_set<const ArrayNode*> seen;
  const auto visit = [&](ArrayNode& node) {
    if (!seen.insert(&node).second) return false;
    if (node.page != 0) used.push_back({node.page, node.page + catalogue_page_bytes});
    for (const LeafEntry& at : node.entries) {
      if (!at || at.shared->entry.hold) continue;
      const std::uint64_t end = align_up(at.shared->entry.end_offset(geometry.block_bytes), grain);
      used.push_back({at.shared->entry.first_offset, end});
      entries.push_back(&at.shared->entry);
    }
    return true;
  };
  for (const ArrayTable* table : retained_.tables()) table->for_each_new_node(visit);
  space_ = std::make_shared<FreeSpace>(region_.data_offset, std::move(used));
  // An array's versions in one extent may be of several sizes.
  std::unordered_map<std::uint64_t, Extent> extents;
  for (const ArrayEntry* entry : entries) {
    const std::uint64_t end = align_up(entry->end_offset(geometry.block_bytes), grain);
    Extent& extent =
        extents.try_emplace(entry->first_offset, entry->first_offset, end).first->second;
    extent.end = std::max(extent.end, end);
  }
  std::unordered_map<std::uint64_t, std::shared_ptr<ExtentHold>> holds;
  for (ArrayEntry* entry : entries) {
    std::shared_ptr<ExtentHold>& hold = holds[entry->first_offset];
    if (!hold) hold = std::make_shared<ExtentHold>(space_, extents.at(entry->first_offset));
    entry->hold = hold;
  }
  pages_ = std::make_unique<CataloguePages>(*device_, space_);
  for (const ArrayTable* table : retained_.tables()) pages_->adopt(*table);
  retained_.tell_all();
}

Status Pool::verify_arrays(const Catalogue& catalogue) const {
  for (const ArrayEntry& entry : catalogue.arrays) {
    if (entry.shape.mode == ArrayMode::flush) continue;
    PERDURE_TRY(
        located(verify_and_copy(*device_, entry, region_.geometry.block_bytes, nullptr, nullptr)));
  }
  return Status::success();
}

Status Pool::check_chosen(bool asked) const {
  const bool looked_at = asked || recovered_.choice.weak || recovered_.choice.fell_back;
  return looked_at ? verify_arrays(recovered_.catalogue) : Status::success();
}

// [collective] From here on the chosen version is the newest, on all ranks.
Status Pool::make_recovered_newest(const std::function<Status()>& when_newest) {
  broken_ = finish_recovery(*device_, slots_, group_, recovered_, when_newest);
  PERDURE_TRY(broken_);
  restarted_ = true;
  successor_open_ = true;
  retained_.forget(open_slot_index());
  recovered_.slots.clear();
  recovered_.catalogue.arrays = {};  // what they name is kept only as long as it is retained
  return Status::success();
}

Result<std::uint64_t> Pool::restart() {
  auto version = change_ && change_->old().version() != 0 ? restart_changed() : restart_now();
  if (!version.ok()) run_page_.set_refused(version.status());
  return version;
}

Status Pool::check_first_restart() const {
  PERDURE_TRY(check_usable());
  if (!restarted_) return Status::success();
  return {Code::wrong_state, "perdure_restart() was called before"};
}

Result<std::uint64_t> Pool::restart_now() {
  const CollectiveCall call(group_, "perdure_restart");
  const std::uint64_t start_ns = monotonic_ns();
  run_page_.set_phase(RunPhase::restarting);
  Status local = check_first_restart();
  if (local.ok()) local = check_chosen();
  // Loading may store over what newer versions have here. If R is damaged on a rank, they stay.
  if (recovered_.choice.fell_back) PERDURE_TRY(agree(group_, local));
  if (local.ok()) local = make_room_for_catalogue();
  if (local.ok()) local = load_all();
  if (local.ok()) local = files_.check(recovered_.catalogue);
  PERDURE_TRY(agree(group_, local));
  PERDURE_TRY(make_recovered_newest([this] { return files_.cut(recovered_.catalogue); }));
  scalars_.load();
  note_restarted(start_ns);
  return status_.version;
}

void Pool::note_restarted(std::uint64_t start_ns) {
  device_->touch_pages();  // of a file that another number of ranks has made
  status_.restart_ns = monotonic_ns() - start_ns;
  run_page_.set_restored(status_.version, scalars_.iteration_of(next_), status_.restart_ns);
  run_page_.set_phase(RunPhase::computing);
}

std::vector<VersionInfo> Pool::versions() const {
  if (!change_) return retained_.versions(head(), open_slot_index());
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
  if (version == 0) return next_.arrays;
  PERDURE_TRY(check_held(version));
  if (change_ && !change_->keeps_version()) return next_.arrays;  // there is no other version
  return retained_.arrays_of(version);
}

// All that can go wrong with a version goes wrong here, before anything is changed.
Result<Catalogue> Pool::check_restorable(std::uint64_t version) const {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(check_held(version));
  const SlotView view = slots_.read(slots_.slot_of(version));
  if (!view.body || view.body->version != version) {
    return Status(Code::damaged, "version ", version,
                  " can't be read: ", (view.body ? "its slot holds another one" : view.problem));
  }
  if (next_.version - 1 - version > back_max) {
    return Status(Code::damaged, "version ", version, " is too old for version ", next_.version,
                  " to be made from it; the slots were damaged");
  }
  PERDURE_TRY(open_.check_fits(*view.body));
  PERDURE_TRY(scalars_.check_fits(*view.body));
  PERDURE_TRY(verify_arrays(*view.body));
  if (!restarted_) PERDURE_TRY(check_chosen());
  Catalogue target = *view.body;
  target.arrays = retained_.arrays_of(version);  // with their extents and pages
  return target;
}

// The next version is made of `target` and of what is open beside it.
void Pool::adopt(const Catalogue& target) {
  Catalogue next = target;
  next.version = next_.version;
  next.parent = target.version;
  next.incarnation = next_.incarnation + 1 + options_.incarnations_of_taker;
  open_.adopt(target.arrays, retained_);
  next.arrays = next_.arrays;
  for (const auto& [array, box] : boxes_) put_box(next, array.first, array.second, &box);
  scalars_.adopt(next);
  next_ = std::move(next);
}

Status Pool::restore(std::uint64_t version) {
  const CollectiveCall call(group_, "perdure_restore");
  if (commit_pending()) PERDURE_TRY(commit_wait().status());
  const std::uint64_t start_ns = monotonic_ns();
  Status may = check_changing();
  if (may.ok()) may = check_alone("can't be brought to another version");
  PERDURE_TRY(agree(group_, may, {About::restored, version}));
  const auto target = check_restorable(version);
  PERDURE_TRY(agree(group_, target.ok() ? files_.check(target.value()) : target.status()));
  run_page_.set_phase(RunPhase::restarting);
  // First what any restart would do, so that a version that some rank had completed alone is gone.
  if (!restarted_) PERDURE_TRY(make_recovered_newest([] { return Status::success(); }));
  adopt(target.value());
  // One store on each rank; the pool stays usable only if all did it (commit.cpp, pool.I7).
  Status local = options_.taker != nullptr
                     ? options_.taker->restoring(target.value(), next_.incarnation - 1)
                     : Status::success();
  if (local.ok()) local = open_slot(*device_, slots_, next_.version, next_.parent);
  retained_.forget(open_slot_index());
  retained_.tell_all();
  successor_open_ = local.ok();
  if (local.ok()) local = make_room_for_catalogue();
  if (local.ok()) local = load_all();
  if (local.ok()) local = files_.cut(target.value());
  broken_ = agree(group_, local);
  PERDURE_TRY(broken_);
  if (options_.taker != nullptr) PERDURE_TRY(options_.taker->restored(target.value()));
  scalars_.load();
  status_.version = version;
  head_incarnation_ = target.value().incarnation;
  status_.restart_ns = monotonic_ns() - start_ns;
  run_page_.set_restored(version, scalars_.iteration_of(next_), status_.restart_ns);
  run_page_.set_phase(RunPhase::computing);
  return Status::success();
}

Status Pool::delete_version(std::uint64_t version) {
  const CollectiveCall call(group_, "perdure_delete_version");
  if (commit_pending()) PERDURE_TRY(commit_wait().status());
  Status local = check_usable();
  if (local.ok() && !restarted_) {
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
  const std::uint64_t parent = retained_.parent_of(version);
  // After a failure some rank may have it and some not: only recovery can tell.
  broken_ = agree(group_, delete_slot(*device_, slots_, version, parent));
  PERDURE_TRY(broken_);
  retained_.drop(version, parent);
  return Status::success();
}

}  // namespace perdure
