// Object: rows, boxes and the end of a nest. The invariants stand at the top of object.cpp.
#include <cstring>

#include "base/clock.hpp"
#include "ipv/box_rows.hpp"
#include "ipv/object.hpp"
#include "ipv/this_thread.hpp"

namespace perdure {
namespace {

// A nest's end makes the address read-only, and the next nest of the epoch writable again. With
// more nests than this, that costs more than it saves.
constexpr unsigned sealed_nests_max = 4;
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
  if (!own_thread() || phase_ == Phase::off) return false;
  return tier_ == PERDURE_IPV_VERSION || tier_ == PERDURE_IPV_STREAM || tier_ == PERDURE_IPV_FUSED;
}

bool InPlaceObject::takes_rows(ByteRange row) {
  return rows_count() && row.begin <= row.end && row.end <= bytes_;
}

// A row is about to be stored to. What was stored before it in this epoch is in the sets.
void InPlaceObject::enter_nest() {
  if (phase_ == Phase::clean) {
    begin_epoch();
  } else if (phase_ != Phase::writing) {
    stop_early_flush();
  }
  if (phase_ == Phase::writing) return;
  all_changed_ = false;
  enter_writing();
}

// Past the cache: in a nest nothing but rows is stored, and rows are counted as dirty themselves.
void InPlaceObject::copy_old(ByteRange range) {
  lacking_[array_->working_copy()].for_each_run(range, [this](ByteRange run) {
    device_.copy(new_offset_ + run.begin, device_.base() + old_offset_ + run.begin,
                 run.end - run.begin);
    copied_bytes_.add(run.end - run.begin);
    streamed_bytes_.add(run.end - run.begin);
    surroundings_.unfenced.store(1, std::memory_order_relaxed);
  });
}

// Through the cache: the program is about to store there, and all will be flushed.
void InPlaceObject::store_old(ByteRange range) {
  lacking_[array_->working_copy()].for_each_run(range, [this](ByteRange run) {
    device_.store(new_offset_ + run.begin, device_.base() + old_offset_ + run.begin,
                  run.end - run.begin);
    copied_bytes_.add(run.end - run.begin);
  });
}

// What later nests of the epoch store to is saved behind the last of them only, if this epoch goes
// as the one before went.
bool InPlaceObject::nest_is_last() const {
  return nests_ + 1 >= usual_nests_ && !usually_plain_;
}

// P2. Returns the difference for loads.
ptrdiff_t InPlaceObject::place_row(ByteRange row, std::uint64_t row_bytes) {
  const RowPlan plan = interval_.row(row);
  for (const ByteRange& range : plan.copies) copy_old(range);
  const bool inside =
      plan.copies[0].begin >= plan.copies[0].end && plan.copies[1].begin >= plan.copies[1].end;
  if (plan.loads_from_old || inside) fresh_row_bytes_.add(row_bytes);
  return plan.loads_from_old ? device_.base() + old_offset_ - address_ : 0;
}

perdure_ipv_row InPlaceObject::row_begin(ByteRange row) {
  perdure_ipv_row differences{0, 0};
  lock_for_stores();
  if (phase_ != Phase::off && row.begin != row.end) {
    rows_.add(1);
    in_nest_ = true;
    if (!takes_rows(row)) {
      plain_locked();
    } else {
      enter_nest();
      changed_.add(row);
      if (placed()) {
        ++open_rows_;
        differences.load = place_row(row, row.end - row.begin);
        differences.store = take_row_buffer(row);
      } else {
        pending_.add(row);
      }
    }
  }
  lock_.unlock();
  return differences;
}

// The difference for stores; 0 if the row is stored to where it is.
ptrdiff_t InPlaceObject::take_row_buffer(ByteRange row) {
  const std::uint64_t bytes = row.end - row.begin;
  const bool buffered = tier_ == PERDURE_IPV_STREAM && open_rows_ == 1 && !all_changed_ &&
                        nest_is_last() && bytes >= buffered_bytes_min &&
                        bytes <= buffered_bytes_max;
  if (!buffered) {
    dirty_.add(row);
    return 0;
  }
  const std::uint64_t room = bytes + 2 * cache_line_bytes;
  if (row_room_ < room) {
    row_memory_ = std::make_unique<std::byte[]>(room + cache_line_bytes);
    row_room_ = room + cache_line_bytes;
    const auto begin = reinterpret_cast<std::uintptr_t>(row_memory_.get());
    row_buffer_ = row_memory_.get() + (cache_line_bytes - begin % cache_line_bytes);
  }
  buffered_row_ = row;
  return row_buffer_ + row.begin % cache_line_bytes - (address_ + row.begin);
}

void InPlaceObject::row_end(ByteRange row) {
  lock_.lock();
  if (phase_ == Phase::writing && takes_rows(row)) {
    if (open_rows_ > 0) --open_rows_;
    if (buffered_row_ && *buffered_row_ == row) {
      device_.copy(new_offset_ + row.begin, row_buffer_ + row.begin % cache_line_bytes,
                   row.end - row.begin);
      streamed_bytes_.add(row.end - row.begin);
      surroundings_.unfenced.store(1, std::memory_order_relaxed);
      buffered_row_.reset();
    }
    if (!placed()) stream_row(row);
  }
  lock_.unlock();
}

// FUSED. The line in which the row begins is whole by now; the one in which it ends belongs to the
// next row, or to save().
void InPlaceObject::stream_row(ByteRange row) {
  if (all_changed_ || !nest_is_last()) return;
  const std::uint64_t begin = row.begin / cache_line_bytes * cache_line_bytes;
  const std::uint64_t end = row.end / cache_line_bytes * cache_line_bytes;
  if (begin >= end) return;
  device_.copy(new_offset_ + begin, memory() + begin, end - begin);
  pending_.remove({begin, end});
  copied_bytes_.add(end - begin);
  streamed_bytes_.add(end - begin);
  surroundings_.unfenced.store(1, std::memory_order_relaxed);
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
      if (placed()) differences.load = place_row(rows.hull(), rows.total_bytes());
      const bool fresh = differences.load != 0;
      std::uint64_t before = rows.hull().begin;
      rows.for_each([&](ByteRange row) {
        rows_.add(1);
        changed_.add(row);
        (placed() ? dirty_ : pending_).add(row);
        if (fresh) copy_old({before, row.begin});  // between two rows; P2 counts it as current
        before = row.end;
      });
    }
  }
  lock_.unlock();
  return differences;
}

void InPlaceObject::box_end(const Box& box) {
  const BoxRows rows(box.first, box.dimensions, box.counts, box.strides);
  lock_.lock();
  if (phase_ == Phase::writing && !placed() && rows.valid() && takes_rows(rows.hull())) {
    rows.for_each([this](ByteRange row) { stream_row(row); });
  }
  lock_.unlock();
}

// P3, by the thread that announced the rows.
void InPlaceObject::complete_in_nest() {
  open_rows_ = 0;
  buffered_row_.reset();
  if (!placed()) return;
  for (const ByteRange& range : interval_.complete(bytes_)) copy_old(range);
}

bool InPlaceObject::nest_end() {
  lock_.lock();
  bool flush = false;
  if (phase_ == Phase::writing && own_thread()) {
    const bool last = nest_is_last();
    complete_in_nest();
    if (!all_changed_) flush = seal() && last;
  }
  in_nest_ = false;
  lock_.unlock();
  return flush;
}

// P4: from here on a store is seen, or all counts.
bool InPlaceObject::seal() {
  if (nests_ >= sealed_nests_max) {
    note_all_changed();
    return false;
  }
  ++nests_;
  if (views_ != nullptr) show_idle(home_place());
  phase_ = Phase::sealed;
  return true;
}

bool InPlaceObject::finish_stores() {
  lock_.lock();
  if (phase_ == Phase::writing && own_thread() && !always_changed()) {
    complete_in_nest();
    in_nest_ = false;
    if (views_ != nullptr) show_idle(home_place());
    phase_ = Phase::sealed;
  }
  const bool sealed = phase_ == Phase::sealed;
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
      taken = {new_offset_ + begin, new_offset_ + end};
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
  Status status = save_dirty();
  if (status.ok()) status = save_pending();
  if (status.ok()) status = device_.fence();  // D4
  if (status.ok()) {
    dirty_.clear();
    pending_.clear();
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
