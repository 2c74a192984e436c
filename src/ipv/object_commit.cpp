// SPDX-License-Identifier: BSD-3-Clause
//
// Object: becoming a version, changing its tier, pins. The invariants are at the top of
// object.cpp.
#include <array>
#include <cstring>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "ipv/object.hpp"

namespace perdure {
namespace {

// An object in COPY that changed in so many versions one after the other is not write-protected for
// the next ones; but once in so many it is, to see whether it still changes.
constexpr unsigned unprotected_from = 3;
constexpr unsigned protected_every = 64;

// Shorter runs of lines, as the ends of rows are, are flushed together, so many at a time.
constexpr std::uint64_t flushed_alone_bytes_min = 4096;
constexpr std::size_t flushed_together = 64;

}  // namespace

// The flushing thread has nothing to do with it any more, and no version is under way.
Status InPlaceObject::hand_over(Way way) {
  const bool beside = way == Way::beside;
  const std::uint64_t start_ns = monotonic_ns();
  const std::lock_guard<FaultLock> lock(lock_);
  if (phase_ == Phase::off || phase_ == Phase::lost) return Status::success();
  seal_for_version(beside);
  Status status;
  if (pins_ == 0 && views_ != nullptr) status = switch_tier(usual_tier_);
  if (phase_ == Phase::sealed) take(beside, status);
  counts_.waited_ns.add(monotonic_ns() - start_ns);
  return status;
}

// Protection costs two changes of pages and a fault in each iteration, and spares a copy where the
// object does not change. A thread that copies beside the program needs it.
void InPlaceObject::choose_protection(bool changes, bool beside) {
  changed_in_turn_ = changes && tier_ == PERDURE_IPV_COPY ? changed_in_turn_ + 1 : 0;
  left_writable_ = !beside && !flushed_by_hand_ && changed_in_turn_ >= unprotected_from &&
                   changed_in_turn_ % protected_every != 0;
}

void InPlaceObject::seal_for_version(bool beside) {
  if (always_changed()) {
    if (phase_ == Phase::clean) begin_iteration();
    phase_ = Phase::writing;
    all_changed_ = false;
    note_all_changed();
  }
  if (phase_ != Phase::clean) iteration_.end(all_changed_);
  choose_protection(phase_ == Phase::writing, beside);
  if (phase_ != Phase::writing) return;
  complete_in_nest();
  in_nest_ = false;
  if (views_ != nullptr) show_idle(home_place());
  phase_ = Phase::sealed;
}

// P6.
void InPlaceObject::take(bool beside, Status& status) {
  const bool chosen = choose_new();
  PERDURE_ASSERT(chosen);  // no version is under way
  in_version_ = true;
  taken_.offset = iteration_.new_offset();
  taken_.pending = std::exchange(pending_, false);
  taken_.dirty.take(dirty_);
  taken_.flushed_bytes = taken_.copied_bytes = taken_.waited_ns = 0;
  if (beside && status.ok() && always_changed()) {  // later stores are not seen
    status = save().status();
    taken_.pending = false;
    taken_.dirty.clear();
    taken_.waited_ns = 0;  // hand_over() counts it
  }
  contents_ = array_->working_copy();
  for (std::uint32_t copy = 0; copy < array_->copies(); ++copy) {
    if (copy != contents_) lacking_[copy].add(changed_);
  }
  lacking_[contents_].clear();
  changed_.clear();
  dirty_.clear();
  all_changed_ = false;
  has_new_ = false;
  phase_ = Phase::clean;
}

void InPlaceObject::use_tier(Tier tier) {
  const std::lock_guard<FaultLock> lock(lock_);
  if (!why_copy_.empty() || tier == PERDURE_IPV_AUTO) return;
  if (tier == PERDURE_IPV_STREAM && !may_be_placed().ok()) return;
  usual_tier_ = tier;
}

// Clean or sealed: the contents move to where the tier has them.
Status InPlaceObject::switch_tier(Tier tier) {
  if (tier == tier_) return Status::success();
  choose_protection(false, false);
  const bool clean = phase_ == Phase::clean;
  const bool chosen = clean || choose_new();
  PERDURE_ASSERT(chosen);  // no version is under way
  const std::uint32_t copy = clean ? contents_ : array_->working_copy();
  if (tier == PERDURE_IPV_COPY) {
    PERDURE_TRY(ensure_memory_place());
    std::memcpy(memory_, device_.base() + array_->copy_offset(copy), bytes_);
    show_idle(*memory_place_);
  } else {
    PERDURE_TRY(ensure_pool_places());
    if (!clean) {
      PERDURE_TRY_ASSIGN(auto written, write_out(array_->copy_offset(copy), nullptr, pending_));
      count(written);
      pending_ = false;
      iteration_.note_complete();
    }
    show_idle(pool_places_[copy]);
  }
  tier_ = tier;
  return Status::success();
}

// Except for the fence: the lines of `dirty` (may be null) in the copy at `offset` are flushed,
// and, if `pending`, the memory is copied there.
Result<InPlaceObject::Written> InPlaceObject::write_out(std::uint64_t offset, const LineSet* dirty,
                                                        bool pending) const {
  Written written;
  Status status;
  std::array<ByteRange, flushed_together> few;
  std::size_t count = 0;
  const auto flush_few = [&] { device_.flush_each({few.data(), std::exchange(count, 0)}); };
  const auto flush = [&](ByteRange run) {
    if (!status.ok()) return;
    const std::uint64_t bytes = run.end - run.begin;
    written.flushed_bytes += bytes;
    if (bytes >= flushed_alone_bytes_min) {
      status = surroundings_.writer.flush(offset + run.begin, bytes);
      return;
    }
    few[count++] = {offset + run.begin, offset + run.end};
    if (count == few.size()) flush_few();
  };
  if (dirty != nullptr) dirty->for_each_run(all(), flush);
  if (count != 0) flush_few();
  PERDURE_TRY(status);
  if (!pending) return written;
  PERDURE_TRY(surroundings_.writer.copy(offset, memory(), bytes_));
  written.copied_bytes = bytes_;
  return written;
}

void InPlaceObject::count(const Written& written) {
  counts_.flushed_bytes.add(written.flushed_bytes);
  counts_.copied_bytes.add(written.copied_bytes);
  counts_.streamed_bytes.add(written.copied_bytes);
}

// P6.
Result<std::uint64_t> InPlaceObject::save() {
  const std::uint64_t start_ns = monotonic_ns();
  PERDURE_TRY_ASSIGN(auto written, write_out(taken_.offset, &taken_.dirty, taken_.pending));
  taken_.flushed_bytes += written.flushed_bytes;
  taken_.copied_bytes += written.copied_bytes;
  if (own_thread()) taken_.waited_ns += monotonic_ns() - start_ns;
  return written.flushed_bytes + written.copied_bytes;
}

void InPlaceObject::end_version(CommitOutcome outcome) {
  const std::lock_guard<FaultLock> lock(lock_);
  const bool was_in_version = std::exchange(in_version_, false);
  if (was_in_version) {
    count({taken_.flushed_bytes, taken_.copied_bytes});
    counts_.waited_ns.add(taken_.waited_ns);
  }
  switch (outcome) {
    case CommitOutcome::committed:
      if (was_in_version) counts_.versions.add(1);
      drop_kept();
      break;
    case CommitOutcome::retracted:
      take_back(was_in_version);
      break;
    case CommitOutcome::unknown:
      if (was_in_version && phase_ == Phase::clean) phase_ = Phase::lost;
      break;
  }
}

// P7. The fence that failed may also have lost what the next iteration brought past the cache.
void InPlaceObject::take_back(bool was_in_version) {
  if (!was_in_version && (phase_ == Phase::clean || phase_ == Phase::off)) return;
  for (LineSet& lines : lacking_) lines.add_all();
  if (phase_ == Phase::clean) {
    iteration_.begin_whole(array_->copy_offset(contents_), lacking_[contents_]);
    has_new_ = true;
    phase_ = Phase::sealed;
  }
  all_changed_ = false;
  note_all_changed();
}

Status InPlaceObject::pin() {
  lock_for_stores();
  const std::lock_guard<FaultLock> lock(lock_, std::adopt_lock);
  if (phase_ == Phase::off || views_ == nullptr) {
    ++pins_;
    return Status::success();
  }
  if (in_nest_) {
    return Status(Code::wrong_state, "object ", quoted(name_),
                  " can't be pinned within a nest; call perdure_ipv_box_end() before");
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
    return Status(Code::wrong_state, "object ", quoted(name_), " is not pinned");
  }
  if (--pins_ > 0 || phase_ == Phase::off || views_ == nullptr) return Status::success();
  if (phase_ == Phase::clean) begin_iteration();
  phase_ = Phase::writing;
  all_changed_ = false;
  note_all_changed();
  return Status::success();
}

}  // namespace perdure
