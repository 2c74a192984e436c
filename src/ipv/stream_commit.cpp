// SPDX-License-Identifier: BSD-3-Clause
//
// Stream object: becoming a version. The invariants are at the top of stream_object.cpp.
#include <array>
#include <mutex>
#include <utility>

#include "base/clock.hpp"
#include "ipv/stream_object.hpp"

namespace perdure {
namespace {

// Shorter runs of lines, as the ends of rows are, are flushed together, so many at a time.
constexpr std::uint64_t flushed_alone_bytes_min = 4096;
constexpr std::size_t flushed_together = 64;

}  // namespace

// The flushing thread has nothing to do with it any more, and no version is under way.
Status StreamObject::hand_over() {
  const std::uint64_t start_ns = monotonic_ns();
  const std::lock_guard<FaultLock> lock(lock_);
  if (phase_ == Phase::off || phase_ == Phase::lost) return Status::success();
  seal_for_version();
  if (phase_ == Phase::sealed) take();
  counts_.waited_ns.add(monotonic_ns() - start_ns);
  return check_ ? check_->status(name_, surroundings_.next_version) : Status::success();
}

void StreamObject::seal_for_version() {
  if (phase_ != Phase::clean) iteration_.end(all_changed_);
  if (phase_ != Phase::writing) return;
  complete_in_nest();
  in_nest_ = false;
  show_idle();
  phase_ = Phase::sealed;
}

// ipv.P6.
void StreamObject::take() {
  in_version_ = true;
  taken_.offset = iteration_.new_offset();
  taken_.dirty.take(dirty_);
  taken_.flushed_bytes = 0;
  contents_.handed_over(array_->working_copy(), changed_);
  changed_.clear();
  dirty_.clear();
  all_changed_ = false;
  phase_ = Phase::clean;
}

// Except for the fence: the lines of `dirty` in the copy at `offset`. Returns their bytes.
Result<std::uint64_t> StreamObject::flush(std::uint64_t offset, const LineSet& dirty) const {
  std::uint64_t flushed = 0;
  Status status;
  std::array<ByteRange, flushed_together> few;
  std::size_t count = 0;
  const auto flush_few = [&] {
    surroundings_.device.flush_each({few.data(), std::exchange(count, 0)});
  };
  dirty.for_each_run(all(), [&](ByteRange run) {
    if (!status.ok()) return;
    const std::uint64_t bytes = run.end - run.begin;
    flushed += bytes;
    if (bytes >= flushed_alone_bytes_min) {
      status = surroundings_.writer.flush(offset + run.begin, bytes);
      return;
    }
    few[count++] = {offset + run.begin, offset + run.end};
    if (count == few.size()) flush_few();
  });
  if (count != 0) flush_few();
  PERDURE_TRY(status);
  return flushed;
}

// ipv.P6.
Result<std::uint64_t> StreamObject::save_contents() {
  const std::uint64_t start_ns = monotonic_ns();
  PERDURE_TRY_ASSIGN(const std::uint64_t flushed, flush(taken_.offset, taken_.dirty));
  taken_.flushed_bytes += flushed;
  counts_.waited_ns.add(monotonic_ns() - start_ns);
  return flushed;
}

const std::byte* StreamObject::contents() const {
  if (phase_ == Phase::off) return address_;
  return surroundings_.device.base() + array_->copy_offset(contents_.holder());
}

void StreamObject::take_plain_copy(const std::byte* plain) {
  const std::lock_guard<FaultLock> lock(lock_);
  if (check_) check_->take(plain);
}

void StreamObject::end_version(CommitOutcome outcome) {
  const std::lock_guard<FaultLock> lock(lock_);
  const bool was_in_version = std::exchange(in_version_, false);
  if (was_in_version) counts_.flushed_bytes.add(taken_.flushed_bytes);
  switch (outcome) {
    case CommitOutcome::committed:
      if (was_in_version) counts_.versions.add(1);
      break;
    case CommitOutcome::retracted:
      if (was_in_version || (phase_ != Phase::clean && phase_ != Phase::off)) take_back();
      break;
    case CommitOutcome::unknown:
      if (was_in_version && phase_ == Phase::clean) phase_ = Phase::lost;
      break;
  }
}

// ipv.P7. The fence that failed may also have lost what the next iteration brought past the cache.
void StreamObject::take_back() {
  contents_.distrust();
  if (phase_ == Phase::clean) {
    iteration_.begin_whole(array_->copy_offset(contents_.holder()),
                           contents_.lacking(contents_.holder()));
    phase_ = Phase::sealed;
  }
  all_changed_ = false;
  note_all_changed();
}

}  // namespace perdure
