// SPDX-License-Identifier: BSD-3-Clause
//
// Stream object: boxes. The invariants are at the top of stream_object.cpp.
#include <algorithm>
#include <atomic>
#include <span>
#include <utility>

#include "base/clock.hpp"
#include "base/this_thread.hpp"
#include "ipv/stream_object.hpp"

namespace perdure {
namespace {

// The device hears of so many at once: what it does for each, if only a counter that is locked,
// would wait each time until the processor has written the row.
constexpr std::uint64_t told_bytes_min = std::uint64_t{64} << 10U;
constexpr std::size_t told_ranges_max = 64;

ByteRange whole_lines(ByteRange range) {
  return {align_up(range.begin, cache_line_bytes), range.end / cache_line_bytes * cache_line_bytes};
}

}  // namespace

// Of offsets in the object; the box may begin elsewhere.
BoxRows StreamObject::rows_of(const perdure_ipv_box& box, BoxRows::Joins joins) const {
  return {reinterpret_cast<std::uintptr_t>(box.first) - first(), box, joins};
}

// A box only counts where it spares something, from the thread that makes the calls, and inside the
// object, of which the nest touches nothing else (abi.R3).
bool StreamObject::takes_box(const perdure_ipv_box& box, const BoxRows& rows) const {
  if (!own_thread() || phase_ == Phase::off || ended_ || in_nest_) return false;
  if (phase_ == Phase::writing && all_changed_) return false;
  if (!rows.valid() || rows.empty()) return false;
  if (rows.hull().begin >= bytes_ || rows.hull().end > bytes_) return false;
  const std::span others(box.others, box.other_count);
  return std::ranges::none_of(others, [this](const perdure_ipv_range& other) {
    return other.low > other.high || overlaps(other.low, other.high);
  });
}

// A box is about to be stored to. What was stored before it in this iteration is in the sets.
void StreamObject::enter_nest() {
  if (phase_ == Phase::clean) {
    begin_iteration();
  } else if (phase_ != Phase::writing) {
    stop_early_flush();
  }
  if (phase_ == Phase::writing) return;
  all_changed_ = false;
  enter_writing();
}

// By the program's thread, which fences when it finishes the version.
void StreamObject::count_copied(const Iteration::Copied& copied) {
  counts_.copied_bytes.add(copied.bytes);
  counts_.streamed_bytes.add(copied.past_cache_bytes);
}

// ipv.P2. Returns the difference for loads.
ptrdiff_t StreamObject::place_box(const BoxRows& rows) {
  const bool loads_from_old = iteration_.place(rows.hull());
  if (loads_from_old) counts_.fresh_row_bytes.add(rows.total_bytes());
  std::uint64_t before = rows.hull().begin;
  rows.for_each([&](ByteRange row) {
    counts_.rows.add(1);
    changed_.add(row);
    dirty_.add(row);
    // Between two rows; ipv.P2 counts it as current.
    if (loads_from_old) count_copied(iteration_.copy_old({before, row.begin}, dirty_));
    before = row.end;
  });
  if (check_ && loads_from_old)
    check_->fill_box(surroundings_.device.base() + iteration_.new_offset(), rows);
  return loads_from_old ? iteration_.old_contents() - address_ : 0;
}

perdure_ipv_answer StreamObject::box_begin(const perdure_ipv_box& box) {
  const BoxRows rows = rows_of(box);
  perdure_ipv_answer answer{0, PERDURE_IPV_NO_BOX};
  lock_for_stores();
  if (takes_box(box, rows)) {
    in_nest_ = true;
    enter_nest();
    counts_.boxes.add(1);
    answer.load = place_box(rows);
    answer.how = worth_past_cache(box.counts[0]) ? PERDURE_IPV_BOX_PAST_CACHE : PERDURE_IPV_BOX;
  }
  lock_.unlock();
  return answer;
}

// What a later nest stores to, or reads, is in the cache when it comes; what the next iteration
// reads seldom is. Short rows stay there: their whole lines are few, and two of them are often one.
bool StreamObject::worth_past_cache(std::uint64_t row_bytes) const {
  return !all_changed_ && iteration_.nest_is_last() &&
         row_bytes >= PERDURE_IPV_PAST_CACHE_BYTES_MIN;
}

// ipv.P4: they are durable after the fence that finishes the version, by this thread.
void StreamObject::note_past_cache(ByteRange lines) {
  if (lines.begin >= lines.end) return;
  counts_.streamed_bytes.add(lines.end - lines.begin);
  untold_.bytes += lines.end - lines.begin;
  if (!untold_.lines.empty() && untold_.lines.back().end == lines.begin) {
    untold_.lines.back().end = lines.end;
  } else {
    untold_.lines.push_back(lines);
  }
  if (untold_.bytes >= told_bytes_min || untold_.lines.size() == told_ranges_max) tell_device();
}

void StreamObject::tell_device() {
  for (const ByteRange& lines : untold_.lines) {
    surroundings_.device.stored_past_cache(iteration_.new_offset() + lines.begin,
                                           lines.end - lines.begin);
  }
  untold_.lines.clear();
  untold_.bytes = 0;
}

// ipv.P3, by the thread that announced the box.
void StreamObject::complete_in_nest() {
  tell_device();
  // Stores past the cache are not ordered before the later ones by which a program tells its other
  // threads that the row is there.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  count_copied(iteration_.complete_in_nest(dirty_));
}

bool StreamObject::box_end(const perdure_ipv_box& box, bool past_cache) {
  lock_.lock();
  bool flush = false;
  if (in_nest_ && phase_ == Phase::writing && own_thread()) {
    if (past_cache && !all_changed_) {
      rows_of(box, BoxRows::Joins::no).for_each([this](ByteRange row) {
        dirty_.remove(whole_lines(row));
        note_past_cache(whole_lines(row));
      });
    }
    const bool last = iteration_.nest_is_last();
    complete_in_nest();
    if (check_) check_->look_at_box(iteration_.new_contents(), rows_of(box));
    compare_shown();
    if (!all_changed_) flush = seal() && last && !dirty_.empty();
  }
  in_nest_ = false;
  lock_.unlock();
  return flush;
}

// ipv.P4: from here on a store is seen, or all counts.
bool StreamObject::seal() {
  if (!iteration_.seal_nest()) {
    note_all_changed();
    return false;
  }
  show_idle();
  phase_ = Phase::sealed;
  return true;
}

bool StreamObject::finish_stores() {
  lock_.lock();
  if (phase_ == Phase::writing && own_thread()) {
    complete_in_nest();
    in_nest_ = false;
    show_idle();
    phase_ = Phase::sealed;
  }
  const bool sealed = phase_ == Phase::sealed;
  lock_.unlock();
  return sealed;
}

ByteRange StreamObject::take_for_flush(ByteRange range) {
  ByteRange taken;
  lock_.lock();
  const bool stored = phase_ == Phase::writing || phase_ == Phase::sealed;
  if (stored && own_thread() && range.end <= bytes_) {
    stop_early_flush();
    const std::uint64_t begin = align_up(range.begin, cache_line_bytes);
    const std::uint64_t end =
        range.end == bytes_ ? bytes() : range.end / cache_line_bytes * cache_line_bytes;
    if (begin < end) {
      dirty_.remove({begin, align_up(end, cache_line_bytes)});
      all_changed_ = false;  // the sets say it; what is announced once more is added once more
      taken = {iteration_.new_offset() + begin, iteration_.new_offset() + end};
    }
  }
  lock_.unlock();
  return taken;
}

bool StreamObject::queue_early_flush() {
  std::uint32_t none = 0;
  return early_.compare_exchange_strong(none, 1);
}

Status StreamObject::flush_early() {
  std::uint32_t queued = 1;
  if (!early_.compare_exchange_strong(queued, 2)) return Status::success();
  const auto flushed = flush(iteration_.new_offset(), dirty_);
  Status status = flushed.status();
  if (status.ok()) status = surroundings_.device.fence();  // D4
  if (status.ok()) {
    counts_.flushed_bytes.add(flushed.value());
    dirty_.clear();
  }
  early_.store(0, std::memory_order_release);
  early_.notify_all();
  return status;
}

// The sets are this thread's when it returns.
void StreamObject::stop_early_flush() noexcept {
  std::uint32_t queued = 1;
  if (early_.compare_exchange_strong(queued, 0)) return;
  while (early_.load(std::memory_order_acquire) == 2) early_.wait(2);
}

}  // namespace perdure
