// SPDX-License-Identifier: BSD-3-Clause
//
// Object: rows, boxes and the end of a nest. The invariants stand at the top of object.cpp.
#include <cstring>

#include "base/clock.hpp"
#include "ipv/box_rows.hpp"
#include "ipv/object.hpp"
#include "ipv/this_thread.hpp"

namespace perdure {
namespace {

// Rows that are worth a buffer, and still in the cache when they are streamed out of it.
constexpr std::uint64_t buffered_bytes_min = 512;
constexpr std::uint64_t buffered_bytes_max = std::uint64_t{256} << 10U;

}  // namespace

bool InPlaceObject::own_thread() const {
  return this_thread() == thread_;
}

// Rows only count where they spare something, from the thread that makes the calls, and inside the
// object; everything else is plain.
bool InPlaceObject::rows_count() const {
  return own_thread() && phase_ != Phase::off && placed();
}

bool InPlaceObject::takes_rows(ByteRange row) {
  return rows_count() && row.begin <= row.end && row.end <= bytes_;
}

// A row is about to be stored to. What was stored before it in this iteration is in the sets.
void InPlaceObject::enter_nest() {
  if (phase_ == Phase::clean) {
    begin_iteration();
  } else if (phase_ != Phase::writing) {
    stop_early_flush();
  }
  if (phase_ == Phase::writing) return;
  all_changed_ = false;
  enter_writing();
}

// Past the cache, by the program's thread, which fences when it finishes the version.
void InPlaceObject::count_streamed(std::uint64_t bytes) {
  counts_.copied_bytes.add(bytes);
  counts_.streamed_bytes.add(bytes);
}

// P2. Returns the difference for loads.
ptrdiff_t InPlaceObject::place_row(ByteRange row, std::uint64_t row_bytes) {
  const Iteration::Placed placed = iteration_.place(row);
  count_streamed(placed.copied_bytes);
  if (placed.fresh) counts_.fresh_row_bytes.add(row_bytes);
  return placed.loads_from_old ? iteration_.old_contents() - address_ : 0;
}

perdure_ipv_row InPlaceObject::row_begin(ByteRange row) {
  perdure_ipv_row differences{0, 0};
  lock_for_stores();
  if (phase_ != Phase::off && row.begin != row.end) {
    counts_.rows.add(1);
    in_nest_ = true;
    if (!takes_rows(row)) {
      plain_locked();
    } else {
      enter_nest();
      changed_.add(row);
      open_rows_.open();
      differences.load = place_row(row, row.end - row.begin);
      differences.store = take_row_buffer(row);
    }
  }
  lock_.unlock();
  return differences;
}

// The difference for stores; 0 if the row is stored to where it is.
ptrdiff_t InPlaceObject::take_row_buffer(ByteRange row) {
  const std::uint64_t bytes = row.end - row.begin;
  const bool buffered = open_rows_.only_one() && !all_changed_ && iteration_.nest_is_last() &&
                        bytes >= buffered_bytes_min && bytes <= buffered_bytes_max;
  if (!buffered) {
    dirty_.add(row);
    return 0;
  }
  return open_rows_.take_buffer(row) - (address_ + row.begin);
}

void InPlaceObject::row_end(ByteRange row) {
  lock_.lock();
  if (phase_ == Phase::writing && takes_rows(row)) {
    if (const std::byte* buffer = open_rows_.close(row); buffer != nullptr) {
      device_.copy(iteration_.new_offset() + row.begin, buffer, row.end - row.begin);
      counts_.streamed_bytes.add(row.end - row.begin);
    }
  }
  lock_.unlock();
}

perdure_ipv_row InPlaceObject::box_begin(const Box& box) {
  const BoxRows rows(box.first, box.dimensions, box.counts, box.strides);
  perdure_ipv_row differences{0, 0};
  lock_for_stores();
  if (phase_ != Phase::off && !(rows.valid() && rows.empty())) {
    in_nest_ = true;
    if (!rows.valid() || !takes_rows(rows.hull())) {
      plain_locked();
    } else {
      enter_nest();
      differences.load = place_row(rows.hull(), rows.total_bytes());
      const bool fresh = differences.load != 0;
      std::uint64_t before = rows.hull().begin;
      rows.for_each([&](ByteRange row) {
        counts_.rows.add(1);
        changed_.add(row);
        dirty_.add(row);
        // Between two rows; P2 counts it as current.
        if (fresh) count_streamed(iteration_.copy_old({before, row.begin}));
        before = row.end;
      });
    }
  }
  lock_.unlock();
  return differences;
}

// P3, by the thread that announced the rows.
void InPlaceObject::complete_in_nest() {
  open_rows_.forget();
  if (placed()) count_streamed(iteration_.complete_past_cache());
}

bool InPlaceObject::nest_end() {
  lock_.lock();
  bool flush = false;
  if (phase_ == Phase::writing && own_thread()) {
    const bool last = iteration_.nest_is_last();
    complete_in_nest();
    if (!all_changed_) flush = seal() && last;
  }
  in_nest_ = false;
  lock_.unlock();
  return flush;
}

// P4: from here on a store is seen, or all counts.
bool InPlaceObject::seal() {
  if (!iteration_.seal_nest()) {
    note_all_changed();
    return false;
  }
  if (views_ != nullptr) show_idle(home_place());
  phase_ = Phase::sealed;
  return true;
}

bool InPlaceObject::finish_stores() {
  lock_.lock();
  flushed_by_hand_ = true;
  if (phase_ == Phase::writing && own_thread() && !always_changed()) {
    complete_in_nest();
    in_nest_ = false;
    if (views_ != nullptr) show_idle(home_place());
    phase_ = Phase::sealed;
  }
  const bool sealed = phase_ == Phase::sealed && choose_new();
  lock_.unlock();
  return sealed;
}

ByteRange InPlaceObject::take_for_flush(ByteRange range) {
  ByteRange taken;
  lock_.lock();
  const bool stored = phase_ == Phase::writing || phase_ == Phase::sealed;
  if (placed() && stored && own_thread() && range.end <= bytes_) {
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

bool InPlaceObject::queue_early_flush() {
  std::uint32_t none = 0;
  return early_.compare_exchange_strong(none, 1);
}

Status InPlaceObject::flush_early() {
  std::uint32_t queued = 1;
  if (!early_.compare_exchange_strong(queued, 2)) return Status::success();
  const auto written = write_out(iteration_.new_offset(), &dirty_, pending_);
  Status status = written.status();
  if (status.ok()) status = device_.fence();  // D4
  if (status.ok()) {
    count(written.value());
    dirty_.clear();
    pending_ = false;
  }
  early_.store(0, std::memory_order_release);
  early_.notify_all();
  return status;
}

// The sets are this thread's when it returns.
void InPlaceObject::stop_early_flush() noexcept {
  std::uint32_t queued = 1;
  if (early_.compare_exchange_strong(queued, 0)) return;
  while (early_.load(std::memory_order_acquire) == 2) early_.wait(2);
}

}  // namespace perdure
