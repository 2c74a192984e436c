// SPDX-License-Identifier: BSD-3-Clause
#include "pool/commit_under_way.hpp"

#include "pool/buffer_memory.hpp"

namespace perdure {

void VersionUnderWay::add(VersionedArray& array, ArrayId entry) {
  array.take_part(catalogue.version, participants.size());
  participants.push_back({&array, entry});
}

// A try that failed had the same number, and perhaps other participants.
bool VersionUnderWay::has(const VersionedArray& array) const {
  return array.part_of_version() == catalogue.version && array.place() < participants.size() &&
         participants[array.place()].array == &array;
}

std::vector<VersionedArray*> VersionUnderWay::arrays() const {
  std::vector<VersionedArray*> all;
  all.reserve(participants.size());
  for (const Participant& participant : participants) all.push_back(participant.array);
  return all;
}

Status VersionUnderWay::collect_changes() const {
  bool tracked = false;
  for (const Participant& participant : participants) {
    PERDURE_TRY(participant.array->collect_changes());
    tracked = tracked || participant.array->is_tracked();
  }
  if (!tracked) return Status::success();
  const bool unseen = stores_may_go_unseen();  // after all pages are protected
  for (const Participant& participant : participants) participant.array->note_unseen(unseen);
  return Status::success();
}

Status VersionUnderWay::save(const RunPage& run_page, std::uint64_t& bytes) const {
  for (std::size_t i = 0; i < participants.size(); ++i) {
    if (i == participants.size() / 2) {
      run_page.rehearse(KillPoint::copy, catalogue.version, iteration);
    }
    PERDURE_TRY_ASSIGN(auto saved, participants[i].array->save());
    bytes += saved;
  }
  return Status::success();
}

void VersionUnderWay::name_copies() {
  for (const Participant& participant : participants) {
    if (!participant.named) participant.array->name_next(catalogue.arrays, participant.entry);
  }
}

void VersionUnderWay::name_copy_of(const VersionedArray& array) {
  Participant& participant = participants[array.place()];
  if (participant.named) return;
  array.name_next(catalogue.arrays, participant.entry);
  participant.named = true;
}

void VersionUnderWay::take_roles(const Retained& retained, std::uint32_t open_slot) const {
  for (const Participant& participant : participants) {
    VersionedArray& array = *participant.array;
    array.commit(catalogue.arrays.leaf_entry(participant.entry));
    retained.tell(array, array.entry().copy, open_slot);
    array.choose_working();
  }
}

void VersionUnderWay::retract() const {
  for (const Participant& participant : participants) participant.array->retract();
}

const VersionUnderWay* CommitUnderWay::pending_version() const {
  if (const auto* saving = std::get_if<Saving>(&state_)) return &saving->version;
  if (const auto* staged = std::get_if<SavingStaged>(&state_)) return &staged->version;
  if (const auto* failed = std::get_if<Failed>(&state_)) return &failed->version;
  return nullptr;
}

VersionUnderWay* CommitUnderWay::pending_version() {
  return const_cast<VersionUnderWay*>(std::as_const(*this).pending_version());
}

VersionUnderWay* CommitUnderWay::captured_version() {
  auto* captured = std::get_if<Captured>(&state_);
  return captured == nullptr ? nullptr : &captured->version;
}

VersionUnderWay& CommitUnderWay::captured() {
  VersionUnderWay* version = captured_version();
  PERDURE_ASSERT(version != nullptr);
  return *version;
}

VersionUnderWay CommitUnderWay::take(VersionUnderWay* version) {
  PERDURE_ASSERT(version != nullptr);
  VersionUnderWay taken = std::move(*version);
  state_ = None{};
  return taken;
}

}  // namespace perdure
