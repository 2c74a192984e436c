// SPDX-License-Identifier: BSD-3-Clause
#include "pool/commit_under_way.hpp"

#include <algorithm>

namespace perdure {

bool VersionUnderWay::has(const VersionedArray* array) const {
  return std::any_of(participants.begin(), participants.end(),
                     [array](const Participant& p) { return p.array == array; });
}

std::vector<VersionedArray*> VersionUnderWay::arrays() const {
  std::vector<VersionedArray*> all;
  all.reserve(participants.size());
  for (const Participant& participant : participants) all.push_back(participant.array);
  return all;
}

Status VersionUnderWay::collect_changes() const {
  for (const Participant& participant : participants) {
    PERDURE_TRY(participant.array->collect_changes());
  }
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
    participant.array->update_entry(catalogue.arrays[participant.entry]);
  }
}

void VersionUnderWay::take_roles(std::uint32_t slot, std::uint32_t open_slot) const {
  for (const Participant& participant : participants) {
    participant.array->commit(slot);
    participant.array->note_named(open_slot, VersionedArray::no_copy);
    participant.array->choose_working();
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

VersionUnderWay& CommitUnderWay::captured() {
  auto* captured = std::get_if<Captured>(&state_);
  PERDURE_ASSERT(captured != nullptr);
  return captured->version;
}

VersionUnderWay CommitUnderWay::take_captured() {
  return take(&captured());
}

VersionUnderWay CommitUnderWay::take_pending() {
  return take(pending_version());
}

VersionUnderWay CommitUnderWay::take(VersionUnderWay* version) {
  PERDURE_ASSERT(version != nullptr);
  VersionUnderWay taken = std::move(*version);
  state_ = None{};
  return taken;
}

}  // namespace perdure
