// SPDX-License-Identifier: BSD-3-Clause
//
// Object: rows, boxes and the end of a nest. The invariants are at the top of stream_object.cpp.
#include <atomic>
#include <utility>

#include "base/clock.hpp"
#include "base/this_thread.hpp"
#include "ipv/box_rows.hpp"
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

// Rows only count where they spare something, from the thread that makes the calls, and inside the
// object; everything else is plain.
bool StreamObject::rows_count() const {
  return own_thread() && phase_ != Phase::off && !ended_;
}

// A row is about to be stored to. What was stored before it in this iteration is in the sets.
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

// P2. Returns the difference for loads.
ptrdiff_t StreamObject::place_row(ByteRange row, std::uint64_t row_bytes) {
  const Iteration::Placed placed = iteration_.place(row, dirty_);
  count_copied(placed.copied);
  if (placed.fresh) counts_.fresh_row_bytes.add(row_bytes);
  return placed.loads_from_old ? iteration_.old_contents() - address_ : 0;
}

perdure_ipv_row StreamObject::row_begin(ByteRange row) {
  perdure_ipv_row answer{0, 0};
  lock_for_stores();
  if (phase_ != Phase::off && row.begin != row.end) {
    counts_.rows.add(1);
    if (!takes_rows(row)) {
      plain_locked();
    } else {
      enter_nest();
      changed_.add(row);
      dirty_.add(row);
      answer.load = place_row(row, row.end - row.begin);
      answer.past_cache = worth_past_cache(row.end - row.begin) ? 1 : 0;
    }
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

// P4: they are durable after the fence that finishes the version, by this thread.
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

void StreamObject::row_end(ByteRange row, bool past_cache) {
  if (!past_cache) return;
  lock_.lock();
  if (phase_ == Phase::writing && takes_rows(row) && !all_changed_) {
    dirty_.remove(whole_lines(row));
    note_past_cache(whole_lines(row));
  }
  lock_.unlock();
}

perdure_ipv_row StreamObject::box_begin(const Box& box) {
  const BoxRows rows(box.first, box.dimensions, box.counts, box.strides);
  perdure_ipv_row answer{0, 0};
  lock_for_stores();
  if (phase_ != Phase::off && !(rows.valid() && rows.empty())) {
    if (!rows.valid() || !takes_rows(rows.hull())) {
      plain_locked();
    } else {
      enter_nest();
      counts_.boxes.add(1);
      forget_parts(rows.hull());
      answer.load = place_row(rows.hull(), rows.total_bytes());
      answer.past_cache = worth_past_cache(box.counts[0]) ? 1 : 0;
      const bool fresh = answer.load != 0;
      std::uint64_t before = rows.hull().begin;
      rows.for_each([&](ByteRange row) {
        counts_.rows.add(1);
        changed_.add(row);
        dirty_.add(row);
        // Between two rows; P2 counts it as current.
        if (fresh) count_copied(iteration_.copy_old({before, row.begin}, dirty_));
        before = row.end;
      });
    }
  }
  lock_.unlock();
  return answer;
}

// Of a box before, which may have been ended without them.
void StreamObject::forget_parts(ByteRange hull) {
  const ByteRange lines{hull.begin / cache_line_bytes * cache_line_bytes,
                        align_up(hull.end, cache_line_bytes)};
  part_ends_.remove(lines);
  part_lines_.remove(lines);
}

bool StreamObject::note_part(ByteRange part) {
  if (!own_thread() || part.begin > part.end || part.end > bytes_) return false;
  if (part.begin % cache_line_bytes != 0) part_ends_.add({part.begin, part.begin + 1});
  if (part.end % cache_line_bytes != 0) part_ends_.add({part.end - 1, part.end});
  // The device hears of it now: it writes while the rest of the box is computed.
  lock_.lock();
  if (phase_ == Phase::writing && takes_rows(part) && !all_changed_) {
    note_past_cache(whole_lines(part));
    part_lines_.add(whole_lines(part));
  }
  lock_.unlock();
  return true;
}

// Other threads flushed what of a line they did not fill, and fenced.
void StreamObject::box_end_past_cache(const Box& box) {
  const BoxRows rows(box.first, box.dimensions, box.counts, box.strides);
  lock_.lock();
  if (phase_ == Phase::writing && rows.valid() && !rows.empty() && takes_rows(rows.hull()) &&
      !all_changed_) {
    const auto note = [this](ByteRange range) {
      const ByteRange lines = whole_lines(range);
      dirty_.remove(lines);
      part_lines_.for_each_run(lines, [this](ByteRange untold) { note_past_cache(untold); }, false);
    };
    rows.for_each([&](ByteRange row) { part_ends_.for_each_run(row, note, false); });
  }
  lock_.unlock();
}

// P3, by the thread that announced the rows.
void StreamObject::complete_in_nest() {
  tell_device();
  // Stores past the cache are not ordered before the later ones by which a program tells its other
  // threads that the row is there.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  count_copied(iteration_.complete_in_nest(dirty_));
}

bool StreamObject::nest_end() {
  lock_.lock();
  bool flush = false;
  if (phase_ == Phase::writing && own_thread()) {
    const bool last = iteration_.nest_is_last();
    complete_in_nest();
    if (!all_changed_) flush = seal() && last && !dirty_.empty();
  }
  lock_.unlock();
  return flush;
}

// P4: from here on a store is seen, or all counts.
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
        range.end == bytes_ ? bytes_ : range.end / cache_line_bytes * cache_line_bytes;
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
