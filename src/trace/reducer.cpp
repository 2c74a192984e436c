// SPDX-License-Identifier: BSD-3-Clause
#include "trace/reducer.hpp"

#include <limits>

#include "base/assert.hpp"

namespace perdure::trace {
namespace {

// Adds the counts of `more`; false, and nothing done, where they don't fit.
bool add_counts(Record& to, const Record& more) {
  constexpr std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  if (to.reads > most - more.reads || to.writes > most - more.writes) return false;
  to.reads += more.reads;
  to.writes += more.writes;
  return true;
}

}  // namespace

Reducer::Reducer(std::uint32_t floor_pages, std::vector<Record>& out)
    : floor_pages_(floor_pages), out_(out), ring_(1024), ring_mask_(1023) {
  PERDURE_ASSERT(floor_pages > 0);
}

void Reducer::append(const Record& record) {
  if (record.page == pending_.page && (pending_.reads | pending_.writes) != 0 &&
      add_counts(pending_, record)) {
    return;
  }
  if ((pending_.reads | pending_.writes) != 0) reference(pending_);
  pending_ = record;
}

// Fewer than floor_pages other pages were referenced since the outer reference of `page`, which is
// listed: the floor_pages-th most recent of the others is older, or there is none.
bool Reducer::droppable(std::uint32_t page) const {
  if (listed_ <= floor_pages_) return true;
  return page != oldest_ && pages_[oldest_].last_time < pages_[page].outer;
}

void Reducer::reference(const Record& record) {
  if (record.page >= pages_.size()) pages_.resize(record.page + 1);
  Page& page = pages_[record.page];
  ++time_;
  if (!page.listed) {
    page.outer = time_;
    page.outer_slot = hold(record);
    page.candidate_slot = none;
    ++listed_;
  } else {
    const bool drop = droppable(record.page);
    if (page.candidate_slot != none && drop &&
        add_counts(held(page.outer_slot).record, held(page.candidate_slot).record)) {
      held(page.candidate_slot).is_dropped = true;
      held(page.candidate_slot).is_final = true;
    } else if (page.candidate_slot != none) {
      held(page.outer_slot).is_final = true;
      page.outer = page.last_time;
      page.outer_slot = page.candidate_slot;
    }
    page.candidate_slot = hold(record);
    unlink(record.page);
  }
  page.last_time = time_;
  to_front(record.page);
  if (listed_ > floor_pages_ + 1) shorten();
  release();
}

// No reference that is still to come can lead to a drop of those of `page` that are held.
void Reducer::settle(std::uint32_t id) {
  Page& page = pages_[id];
  held(page.outer_slot).is_final = true;
  if (page.candidate_slot != none) held(page.candidate_slot).is_final = true;
  page.candidate_slot = none;
  page.listed = false;
  --listed_;
}

void Reducer::shorten() {
  const std::uint32_t page = oldest_;
  unlink(page);
  settle(page);
}

void Reducer::unlink(std::uint32_t id) {
  const Page& page = pages_[id];
  (page.newer == none ? newest_ : pages_[page.newer].older) = page.older;
  (page.older == none ? oldest_ : pages_[page.older].newer) = page.newer;
}

void Reducer::to_front(std::uint32_t id) {
  Page& page = pages_[id];
  page.listed = true;
  page.newer = none;
  page.older = newest_;
  (newest_ == none ? oldest_ : pages_[newest_].newer) = id;
  newest_ = id;
}

std::uint32_t Reducer::hold(const Record& record) {
  if (ring_end_ - ring_begin_ == ring_.size()) grow_ring();
  held(ring_end_) = {record, false, false};
  return ring_end_++;
}

// Places are numbers that wrap, so that they stay valid in a larger ring.
void Reducer::grow_ring() {
  std::vector<Held> larger(ring_.size() * 2);
  const auto mask = static_cast<std::uint32_t>(larger.size() - 1);
  for (std::uint32_t place = ring_begin_; place != ring_end_; ++place) {
    larger[place & mask] = held(place);
  }
  ring_.swap(larger);
  ring_mask_ = mask;
}

void Reducer::release() {
  for (; ring_begin_ != ring_end_ && held(ring_begin_).is_final; ++ring_begin_) {
    if (!held(ring_begin_).is_dropped) out_.push_back(held(ring_begin_).record);
  }
}

void Reducer::flush() {
  if ((pending_.reads | pending_.writes) != 0) reference(pending_);
  pending_ = {};
  while (listed_ > 0) shorten();
  release();
}

}  // namespace perdure::trace
