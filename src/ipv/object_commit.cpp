// SPDX-License-Identifier: BSD-3-Clause
//
// Object: becoming a version, changing its tier, pins. The invariants stand at the top of
// object.cpp.
#include <cstring>
#include <mutex>

#include "base/clock.hpp"
#include "ipv/object.hpp"

namespace perdure {

// The flushing thread has nothing to do with it any more, and no version is under way.
Status InPlaceObject::hand_over(bool beside) {
  const std::uint64_t start_ns = monotonic_ns();
  const std::lock_guard<FaultLock> lock(lock_);
  if (phase_ == Phase::off || phase_ == Phase::lost) return Status::success();
  if (always_changed()) {
    if (phase_ == Phase::clean) begin_iteration();
    phase_ = Phase::writing;
    all_changed_ = false;
    note_all_changed();
  }
  if (phase_ != Phase::clean) iteration_.end(all_changed_);
  if (phase_ == Phase::writing) {
    complete_in_nest();
    in_nest_ = false;
    if (views_ != nullptr) show_idle(home_place());
    phase_ = Phase::sealed;
  }
  Status status = choose_tier();
  if (phase_ == Phase::sealed) {
    if (status.ok() && beside && always_changed()) {
      status = save_pending();
      surroundings_.unfenced = 1;
    }
    phase_ = Phase::handed;
  }
  const std::uint64_t spent_ns = monotonic_ns() - start_ns;
  counts_.waited_ns.add(spent_ns);
  return status;
}

Status InPlaceObject::choose_tier() {
  if (pins_ > 0 || views_ == nullptr) return Status::success();
  if (!choice_) return switch_tier(usual_tier_);
  if (phase_ != Phase::sealed) return Status::success();
  choice_->record(surroundings_.iteration_ns);
  return switch_tier(choice_->next());
}

void InPlaceObject::use_tier(Tier tier) {
  const std::lock_guard<FaultLock> lock(lock_);
  if (!why_copy_.empty() || tier == PERDURE_IPV_AUTO) return;
  choice_.reset();
  usual_tier_ = tier;
}

// Clean or sealed: the contents move to where the tier has them.
Status InPlaceObject::switch_tier(Tier tier) {
  if (tier == tier_) return Status::success();
  const bool clean = phase_ == Phase::clean;
  if (tier == PERDURE_IPV_COPY) {
    PERDURE_TRY(ensure_memory_place());
    const std::uint32_t copy = clean ? array_->consistent_copy() : array_->working_copy();
    std::memcpy(memory_, device_.base() + array_->copy_offset(copy), bytes_);
    show_idle(*memory_place_);
  } else {
    PERDURE_TRY(ensure_pool_places());
    if (!clean) {
      PERDURE_TRY(save_pending());
      surroundings_.unfenced = 1;
      iteration_.note_complete();
    }
    show_idle(pool_places_[clean ? array_->consistent_copy() : array_->working_copy()]);
  }
  tier_ = tier;
  return Status::success();
}

bool InPlaceObject::changed() const {
  return phase_ == Phase::handed;
}

Status InPlaceObject::save_dirty() {
  Status status;
  dirty_.for_each_run(all(), [&](ByteRange run) {
    if (!status.ok()) return;
    status = surroundings_.writer.flush(iteration_.new_offset() + run.begin, run.end - run.begin);
    counts_.flushed_bytes.add(run.end - run.begin);
  });
  return status;
}

Status InPlaceObject::save_pending() {
  if (!pending_) return Status::success();
  PERDURE_TRY(surroundings_.writer.copy(iteration_.new_offset(), memory(), bytes_));
  counts_.copied_bytes.add(bytes_);
  counts_.streamed_bytes.add(bytes_);
  pending_ = false;
  return Status::success();
}

// P6.
Result<std::uint64_t> InPlaceObject::save() {
  const std::uint64_t start_ns = monotonic_ns();
  const std::uint64_t before = counts_.flushed_bytes.get() + counts_.streamed_bytes.get();
  PERDURE_TRY(save_dirty());
  PERDURE_TRY(save_pending());
  if (!surroundings_.beside) counts_.waited_ns.add(monotonic_ns() - start_ns);
  return counts_.flushed_bytes.get() + counts_.streamed_bytes.get() - before;
}

void InPlaceObject::take_committed() {
  const std::uint32_t committed = array_->consistent_copy();
  for (std::uint32_t copy = 0; copy < array_->copies(); ++copy) {
    if (copy != committed) lacking_[copy].add(changed_);
  }
  lacking_[committed].clear();
  changed_.clear();
  dirty_.clear();
  pending_ = false;
  all_changed_ = false;
  counts_.versions.add(1);
  phase_ = Phase::clean;
}

void InPlaceObject::end_version(CommitOutcome outcome) {
  const std::lock_guard<FaultLock> lock(lock_);
  if (phase_ != Phase::handed) return;
  switch (outcome) {
    case CommitOutcome::committed:
      take_committed();
      break;
    case CommitOutcome::retracted:  // P7
      note_all_changed();
      phase_ = Phase::sealed;
      break;
    case CommitOutcome::unknown:
      phase_ = Phase::lost;
      break;
  }
}

Status InPlaceObject::pin() {
  lock_for_stores();
  const std::lock_guard<FaultLock> lock(lock_, std::adopt_lock);
  if (phase_ == Phase::off || views_ == nullptr) {
    ++pins_;
    return Status::success();
  }
  if (in_nest_) {
    return {Code::wrong_state, "object " + quoted(name_) +
                                   " can't be pinned within a nest of rows; call "
                                   "perdure_ipv_nest_end() before"};
  }
  PERDURE_TRY(ensure_memory_place());
  if (pins_++ > 0) return Status::success();
  if (phase_ == Phase::clean) begin_iteration();
  stop_early_flush();
  complete_for_stores();
  if (placed()) std::memcpy(memory_, iteration_.new_contents(), bytes_);
  tier_ = PERDURE_IPV_COPY;
  show(*memory_place_, ViewAccess::write);
  phase_ = Phase::writing;
  all_changed_ = false;
  note_all_changed();
  return Status::success();
}

// Stores since the last version were not seen.
Status InPlaceObject::unpin() {
  lock_for_stores();
  const std::lock_guard<FaultLock> lock(lock_, std::adopt_lock);
  if (pins_ == 0) {
    return {Code::wrong_state, "object " + quoted(name_) + " is not pinned"};
  }
  if (--pins_ > 0 || phase_ == Phase::off || views_ == nullptr) return Status::success();
  if (phase_ == Phase::clean) begin_iteration();
  phase_ = Phase::writing;
  all_changed_ = false;
  note_all_changed();
  return Status::success();
}

}  // namespace perdure
