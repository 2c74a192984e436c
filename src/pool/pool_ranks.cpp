// SPDX-License-Identifier: BSD-3-Clause
//
// Pool: going on with what another number of ranks made (rank_change.hpp has the steps).
#include <algorithm>
#include <cstdio>
#include <cstring>
#include <set>

#include "base/agreement.hpp"
#include "base/checksum.hpp"
#include "base/clock.hpp"
#include "pool/pool.hpp"
#include "pool/redistribution.hpp"

namespace perdure {

Status Pool::check_changing() const {
  if (!change_) return Status::success();
  return Status(Code::wrong_state, "the pool was made by ", change_->old().ranks(),
                " ranks, and is that of ", group_.ranks(),
                " from the first commit on: this is possible after it");
}

Result<std::vector<std::uint64_t>> Pool::stored_extents(const std::string& name,
                                                        RankRule rule) const {
  Status none(Code::not_found, "the pool has no array ", quoted(name),
              ", so a shape is needed to make it");
  if (!change_ || restarted()) {
    const ArrayShape* const held = held_shape(name);
    if (held == nullptr) return none;
    return held->extents;
  }
  const OldRanks& old = change_->old();
  for (std::uint32_t rank = 0; rank < old.ranks(); ++rank) {
    const auto entry = old.catalogue(rank).find_array(name);
    if (!entry) continue;
    std::vector<std::uint64_t> extents = entry->shape.extents;
    if (rule == RankRule::rows) {
      extents.front() = even_share(rows_of(old, name), group_.rank(), group_.ranks());
    } else if (rule != RankRule::same) {
      return Status(Code::rank_mismatch, "the pool was made by ", old.ranks(),
                    " ranks, this job has ", group_.ranks(), ": which part of array ", quoted(name),
                    " is this rank's? Give its shape, or say PERDURE_ROWS or PERDURE_SAME");
    }
    return extents;
  }
  return none;
}

namespace {

Status check_old_rank(const RankChange* change, std::uint32_t old_rank) {
  if (change == nullptr) {
    return {Code::wrong_state,
            "perdure_read() reads what another number of ranks made, until the first commit; here "
            "there is nothing of that kind"};
  }
  if (old_rank < change->old().ranks()) return Status::success();
  return Status(Code::not_found, "the pool has old ranks 0 to ", change->old().ranks() - 1,
                ", not ", old_rank);
}

Status check_range(const std::string& name, std::uint64_t elements, std::uint64_t first,
                   std::uint64_t count) {
  if (first <= elements && count <= elements - first) return Status::success();
  return Status(Code::invalid_argument, count, " elements from ", first, " on reach beyond the ",
                elements, " of ", quoted(name));
}

}  // namespace

Result<ArrayTable> Pool::arrays_of_old(std::uint32_t old_rank) const {
  PERDURE_TRY(check_old_rank(change_.get(), old_rank));
  return change_->old().catalogue(old_rank).arrays;
}

Status Pool::read_old(const std::string& name, std::uint32_t old_rank, std::uint64_t first,
                      std::uint64_t count, void* to) const {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(check_old_rank(change_.get(), old_rank));
  const OldRanks& old = change_->old();
  const auto entry = old.catalogue(old_rank).find_array(name);
  if (entry) {
    const std::uint64_t bytes = element_bytes(entry->shape.type);
    PERDURE_TRY(check_range(name, entry->size_bytes / bytes, first, count));
    PERDURE_TRY_ASSIGN(auto stored, old.open_array(old_rank, *entry));
    return stored.read(first * bytes, count * bytes, static_cast<std::byte*>(to));
  }
  const ScalarEntry* const scalar = old.catalogue(old_rank).find_scalar(name);
  if (scalar == nullptr) {
    return Status(Code::not_found, "version ", old.version(), " of old rank ", old_rank,
                  " has no array or scalar ", quoted(name));
  }
  const std::uint64_t bytes = element_bytes(scalar->type);
  PERDURE_TRY(check_range(name, scalar->bytes.size() / bytes, first, count));
  if (count != 0) std::memcpy(to, scalar->bytes.data() + first * bytes, count * bytes);
  return Status::success();
}

// What the old version has for this rank, beside arrays: scalars that are the same on all old
// ranks, and the notes of the files that this rank names.
Result<Catalogue> Pool::plan_scalars() const {
  const OldRanks& old = change_->old();
  Catalogue held;
  held.version = old.version();
  PERDURE_TRY_ASSIGN(held.scalars, common_scalars(old, [this](const std::string& name) {
                       return next_.scalars().binds(name);
                     }));
  PERDURE_TRY(next_.scalars().check_fits(held));
  for (std::uint32_t rank = 0; rank < old.ranks(); ++rank) {
    for (const FileNote& note : file_notes_of(old.catalogue(rank))) {
      if (next_.files().names(note.path)) {
        held.scalars.push_back({file_note_name(note.path), file_note_bytes(note)});
      }
    }
  }
  return held;
}

// [collective] Each file that the old version notes is named by a rank, or its lines would stay.
Status Pool::agree_on_files(const Catalogue& held) const {
  const OldRanks& old = change_->old();
  std::set<std::string> paths;
  for (std::uint32_t rank = 0; rank < old.ranks(); ++rank) {
    for (const FileNote& note : file_notes_of(old.catalogue(rank))) paths.insert(note.path);
  }
  std::vector<std::string> unnamed;
  for (const std::string& path : paths) {
    std::uint64_t named[] = {held.find_scalar(file_note_name(path)) == nullptr ? 0U : 1U};
    PERDURE_TRY(agree_max(group_, Status::success(), named));
    if (named[0] == 0) unnamed.push_back(quoted(path));
  }
  if (unnamed.empty()) return Status::success();
  return Status(Code::rank_mismatch, "old ranks wrote ", listed(unnamed),
                ", which no rank names now: call perdure_file() for each on one of the ranks, so "
                "that it goes back to what it was");
}

// Local. The array, which is empty, has what the old version has for it.
Status Pool::fill_array(const Redistribution& redistribution, VersionedArray& array) const {
  return redistribution.fill(array.name(), [this](const std::string& sentence) {
    std::fprintf(stderr, "perdure: %s: %s\n", directory().c_str(), sentence.c_str());
  });
}

// Local. All that are open have it; what the old version has nothing for is empty.
Status Pool::take_old_contents(const Redistribution& redistribution, const Catalogue& held) {
  PERDURE_TRY(make_room_for_catalogue());
  const TokenScope token(options_.token.get(), IoKind::read);
  for (auto& [number, open] : next_.arrays()) {
    VersionedArray& array = *open.array;
    if (!redistribution.fills(array.name())) {
      PERDURE_TRY(load_array(open));
      continue;
    }
    tell_named(array, open.entry);
    PERDURE_TRY(array.start_filled(
        next_.catalogue().arrays.at(open.entry),
        [&](VersionedArray& empty) { return fill_array(redistribution, empty); }));
  }
  return next_.files().check(held);
}

// [collective] The version that was taken over exists in the new files, under its number.
Status Pool::commit_old_version(std::uint64_t committed_ns) {
  VersionUnderWay version = begin_version(Status::success());
  std::uint64_t bytes = 0;
  Status data = version.begun;
  if (data.ok()) data = save_with_token(version, bytes);
  if (data.ok()) {
    version.name_copies();
    version.catalogue.committed_ns = committed_ns;
    version.catalogue.incarnation = change_->old().incarnation();  // pool.R9
    version.catalogue.allocated_end = kept_.allocated_end();
  }
  PERDURE_TRY(kept_.commit(parties_of(version), version.catalogue, data).status);
  take_roles(version, true);
  kept_.renumber_chosen(version.catalogue.version);
  return Status::success();
}

void Pool::take_arrays_late() {
  if (change_) change_->take_late();
}

void Pool::say_ranks(const std::string& name, RankRule rule) {
  if (change_) change_->say(name, rule);
}

// Nobody can have bound it before the restart, so what it begins as is no choice of the program's.
Status Pool::check_late_scalar(const std::string& name) const {
  return check_common_scalar(change_->old(), name, "bind it after the first commit");
}

namespace {

const RankWords words_of_windows{
    "window",
    "windows",
    "; the sizes of the ranks' windows divide them",
    "say perdure_ranks=rows, same or by_hand in its info, or where it lies by perdure_box",
    "perdure_ranks=rows, same or by_hand",
    "perdure_ranks=by_hand"};

}  // namespace

// [collective] It was opened just now, and is empty.
Status Pool::take_late(VersionedArray& array, RankRule rule) {
  if (!change_->takes_late() || change_->old().version() == 0) return Status::success();
  const std::uint64_t own = crc64(array.name().data(), array.name().size());
  std::uint64_t names[] = {own, ~own};
  PERDURE_TRY(agree_max(group_, Status::success(), names));
  if (names[0] != ~names[1]) {
    return Status(Code::invalid_argument,
                  "the ranks open different arrays or windows here, one of them ",
                  quoted(array.name()), ": in a pool of another number of ranks all open the same");
  }
  std::map<std::string, NewArray> one;
  one[array.name()] = {&array, rule, next_.boxes().of(array)};
  Redistribution redistribution(change_->old(), group_, std::move(one), Redistribution::Of::these,
                                words_of_windows);
  PERDURE_TRY(redistribution.plan());
  Status filled;
  if (redistribution.fills(array.name())) {
    const TokenScope token(options_.token.get(), IoKind::read);
    filled = fill_array(redistribution, array);
    if (filled.ok()) array.show_first();
  }
  PERDURE_TRY(agree(group_, filled));
  change_->note_taken(array.name());
  return Status::success();
}

// [collective] The new files have R as a version, if they keep it; if not, what the program finds
// is in memory that the next version is made of.
Status Pool::settle_old_version(std::uint64_t before) {
  if (!change_->keeps_version()) {
    for (auto& [number, open] : next_.arrays()) open.array->show_first();
    return Status::success();
  }
  PERDURE_TRY(life_.must(commit_old_version(change_->old().committed_ns())));
  return life_.must(forget_version(before));
}

// [collective] It is not the newest one.
Status Pool::forget_version(std::uint64_t version) {
  const bool there = retained().holds(version) && version != 0;
  if (!there || retained().slot_of(version) == open_slot_index()) return Status::success();
  return kept_.remove(group_, version);
}

Result<std::uint64_t> Pool::restart_changed() {
  const CollectiveCall call(group_, "perdure_restart");
  const std::uint64_t start_ns = monotonic_ns();
  run_page_.set_phase(RunPhase::restarting);
  PERDURE_TRY(agree(group_, check_first_restart()));
  std::map<std::string, NewArray> arrays;
  for (const auto& [number, open] : next_.arrays()) {
    arrays[open.array->name()] = {open.array.get(), change_->said_of(open.array->name()),
                                  next_.boxes().of(*open.array)};
  }
  const auto which = change_->takes_late() ? Redistribution::Of::these : Redistribution::Of::all;
  Redistribution redistribution(change_->old(), group_, std::move(arrays), which);
  PERDURE_TRY(redistribution.plan());
  auto held = plan_scalars();
  PERDURE_TRY(agree(group_, held.status()));
  PERDURE_TRY(agree(group_, agree_on_files(held.value())));
  PERDURE_TRY(agree(group_, take_old_contents(redistribution, held.value())));
  const std::uint64_t before = head();
  PERDURE_TRY(make_recovered_newest([&] { return next_.files().cut(held.value()); }));
  next_.adopt_scalars(held.take());
  next_.scalars().load();
  PERDURE_TRY(settle_old_version(before));
  status_.version = change_->old().version();
  note_restarted(start_ns);
  return status_.version;
}

// [collective] The first commit is done in the new files, and now they become the pool.
Status Pool::finish_change(const Catalogue& newest) {
  std::uint64_t lacks[] = {change_->lacks_arrays() ? 1U : 0U};
  PERDURE_TRY(agree_max(group_, open_successor(), lacks));  // pool.R5
  if (lacks[0] != 0) PERDURE_TRY(forget_version(change_->old().version()));
  PERDURE_TRY(change_->finish());
  device_->renamed(change_->old().directory().path_of(rank_file_name(group_.rank())));
  change_.reset();
  status_.old_ranks = group_.ranks();
  note_place(directory());
  return options_.taker == nullptr ? Status::success() : options_.taker->changed(newest);
}

}  // namespace perdure
