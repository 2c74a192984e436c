// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/copy_object.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "base/clock.hpp"
#include "pmem/shared_view.hpp"
#include "pool/buffer_memory.hpp"
#include "pool/copy_check.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t page_bytes = view_page_bytes;

// Counted from the beginning of the page in which the object begins.
ByteRange own_pages(std::uint64_t skew, std::uint64_t bytes, bool whole_pages) {
  const std::uint64_t begin = align_up(skew, page_bytes);
  const std::uint64_t end =
      whole_pages ? align_up(skew + bytes, page_bytes) : (skew + bytes) / page_bytes * page_bytes;
  return {begin, std::max(begin, end)};
}

}  // namespace

CopyObject::CopyObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
                       std::uint64_t bytes, Tier asked, bool whole_pages, std::string why)
    : InPlaceObject(surroundings, std::move(name), address, bytes, asked),
      skew_(first() % page_bytes),
      own_(own_pages(skew_, bytes, whole_pages)),
      changed_(skew_ + bytes, page_bytes) {
  why_copy_ = std::move(why);
}

// Without a tracker all counts as changed, which is right for any memory.
void CopyObject::watch() {
  if (!surroundings_.guard || pins_ != 0 || own_.begin == own_.end) return;
  if (!std::exchange(may_be_watched_, false)) return;
  const auto stores = check_buffer_memory(address_, bytes_);
  if (!stores.ok() || stores.value() != Stores::by_this_mapping) return;
  auto made = PageTracker::create(address_ - skew_ + own_.begin, own_.end - own_.begin);
  if (made.ok() && made.value()->watch().ok()) {
    tracker_ = made.take();
  } else if (made.ok()) {
    made.value()->stop(true);
  }
}

void CopyObject::stop_watching() {
  if (tracker_ != nullptr) tracker_->stop(true);
  tracker_.reset();
}

Status CopyObject::start() {
  const std::lock_guard<std::mutex> lock(mutex_);
  stale_.assign(array_->copies(), PageSet(skew_ + bytes_, page_bytes));
  for (PageSet& stale : stale_) stale.add_all();
  if (is_restored()) {
    PERDURE_TRY(
        verify_and_copy(surroundings_.device, array_->entry(), bytes(), address(), nullptr));
    stale_[array_->consistent_copy()].clear();
  } else {  // its own contents are what the first version will hold
    must_save_ = true;
  }
  watch();
  started_ = true;
  return Status::success();
}

void CopyObject::leave() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!ended_) stop_watching();
  started_ = false;
}

// ipv.C3.
Status CopyObject::end(Going how) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (ended_) return Status::success();
  if (started_ && how == Going::moved) {
    stop_watching();
    moved_ = true;
  } else if (started_) {
    std::unique_ptr<std::byte[]> kept(new (std::nothrow) std::byte[bytes_]);
    if (kept == nullptr) {
      return Status(Code::no_space, "there is no memory for what object ", quoted(name_), " holds");
    }
    if (const Status found = find_changes(); !found.ok()) note_all_changed();
    std::memcpy(kept.get(), address_, bytes_);
    stop_watching();
    kept_ = std::move(kept);
  }
  ended_ = true;
  return Status::success();
}

// ipv.C4. The sets of an object that `stays` where it is, or of one that is all new.
CopyObject::Stale CopyObject::stale_at(const ObjectMemory& to, bool stays) const {
  const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(to.address) % page_bytes;
  if (!stays) {
    PageSet all(skew + to.bytes, page_bytes);
    all.add_all();
    return {all, std::vector<PageSet>(stale_.size(), all)};
  }
  Stale now{changed_, stale_};
  now.changed.resize(skew + to.bytes);
  if (to.bytes > bytes_) now.changed.add(ByteRange{skew + bytes_, skew + to.bytes});
  for (PageSet& stale : now.of_copy) stale.resize(skew + to.bytes);
  return now;
}

// What allocates comes before the pool's part, which can fail.
Status CopyObject::resize(const ObjectMemory& to, const ResizeInPool& in_pool) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (pins_ != 0) {
    return Status(Code::wrong_state, "object ", quoted(name_),
                  " is pinned where it is: call perdure_ipv_unpin() before it gets another size");
  }
  const bool stays = !ended_ && to.address == address_;
  const std::uint64_t skew = reinterpret_cast<std::uintptr_t>(to.address) % page_bytes;
  const ByteRange own = own_pages(skew, to.bytes, to.whole_pages);
  const bool stays_watched = stays && own == own_;
  if (stays && !stays_watched) {
    if (tracker_ == nullptr || !find_changes().ok()) note_all_changed();
  }
  const bool mostly_as_it_was = changed_.count({0, changed_.pages()}) < changed_.pages() / 2;
  Stale now = stale_at(to, stays);
  const std::uint64_t extent = array_->copy_offset(0);
  PERDURE_TRY(in_pool(false));
  if (!stays_watched && !ended_) stop_watching();
  take_place([&] {
    address_ = to.address;
    bytes_ = to.bytes;
  });
  skew_ = skew;
  own_ = own;
  kept_.reset();
  changed_ = std::move(now.changed);
  stale_ = std::move(now.of_copy);
  if (array_->copy_offset(0) != extent) {
    for (PageSet& stale : stale_) stale.add_all();
    must_save_ = true;
  }
  must_save_ = must_save_ || !stays;
  if (stays_watched) return Status::success();
  // Where all is new, or most of it changes anyway, the next version has all of it; and so it goes
  // on with an object that gets another place each time, which pays for no faults.
  may_be_watched_ = true;
  has_new_place_ = !stays || !mostly_as_it_was;
  if (has_new_place_) return Status::success();
  watch();
  surroundings_.unseen = surroundings_.unseen || stores_may_go_unseen();  // through older pins
  return Status::success();
}

// As a store would, so that where stores are caught the pages can be stored to by the kernel.
void CopyObject::touch(ByteRange range) {
  range.end = std::min(range.end, bytes());
  if (tracker_ == nullptr || ended_) return;
  for (std::uint64_t at = range.begin; at < range.end;
       at = (skew_ + at) / page_bytes * page_bytes + page_bytes - skew_) {
    __atomic_fetch_or(reinterpret_cast<unsigned char*>(address_ + at), 0, __ATOMIC_RELAXED);
  }
}

Status CopyObject::pin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (pins_++ != 0) return Status::success();
  note_all_changed();  // what was stored until now, too
  if (!ended_) stop_watching();
  return Status::success();
}

// Stores since the last version were not seen: hand_over() counts all, and watches from there on.
Status CopyObject::unpin() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (pins_ == 0) {
    return Status(Code::wrong_state, "object ", quoted(name_), " is not pinned");
  }
  --pins_;
  may_be_watched_ = true;
  return Status::success();
}

void CopyObject::note_all_changed() {
  changed_.add_all();
  must_save_ = true;
}

// ipv.C2.
Status CopyObject::find_changes() {
  if (ended_) return Status::success();
  if (tracker_ == nullptr) {
    note_all_changed();
    // After a pin; and what is stored from here on is the next version's.
    if (!std::exchange(has_new_place_, false)) watch();
    return Status::success();
  }
  if (surroundings_.unseen) note_all_changed();
  changed_.add(ByteRange{0, own_.begin});
  changed_.add(ByteRange{own_.end, skew_ + bytes_});
  PageSet found(own_.end - own_.begin, page_bytes);
  PERDURE_TRY(tracker_->collect(found));
  const std::uint64_t before = own_.begin / page_bytes;
  for (PageRun run = found.next_run(0); !run.empty(); run = found.next_run(run.end)) {
    changed_.add_pages({run.first + before, run.end + before});
  }
  return Status::success();
}

// ipv.C1.
Status CopyObject::hand_over() {
  const std::uint64_t start_ns = monotonic_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!started_) return Status::success();
  Status found = find_changes();
  if (!found.ok()) note_all_changed();
  in_version_ = must_save_ || !changed_.next_run(0).empty();
  for (PageSet& stale : stale_) stale.add(changed_);
  changed_.clear();
  counts_.waited_ns.add(monotonic_ns() - start_ns);
  return found;
}

// Of the object.
ByteRange CopyObject::bytes_of(PageRun run) const {
  const std::uint64_t begin = std::max(run.first * page_bytes, skew_);
  const std::uint64_t end = std::min(run.end * page_bytes, skew_ + bytes_);
  return {begin - skew_, end - skew_};
}

Result<std::uint64_t> CopyObject::save_contents() {
  const std::uint64_t start_ns = monotonic_ns();
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::uint32_t copy = array_->working_copy();
  PageSet& stale = stale_[copy];
  std::uint64_t saved = 0;
  for (PageRun run = stale.next_run(0); !run.empty(); run = stale.next_run(run.end)) {
    const ByteRange range = bytes_of(run);
    PERDURE_TRY(surroundings_.writer.copy(array_->copy_offset(copy) + range.begin,
                                          contents() + range.begin, range.end - range.begin));
    saved += range.end - range.begin;
  }
  stale.clear();
  must_save_ = false;
  counts_.copied_bytes.add(saved);
  counts_.streamed_bytes.add(saved);
  counts_.waited_ns.add(monotonic_ns() - start_ns);
  return saved;
}

// When all has been saved of an object that ended, the pool alone has it.
const std::byte* CopyObject::contents() const {
  if (kept_ != nullptr) return kept_.get();
  if (!ended_) return address_;
  return surroundings_.device.base() + array_->copy_offset(array_->consistent_copy());
}

void CopyObject::end_version(CommitOutcome outcome) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (std::exchange(in_version_, false) && outcome == CommitOutcome::committed) {
    counts_.versions.add(1);
  }
  const bool kept_is_new = must_save_ || !changed_.next_run(0).empty();
  if (outcome == CommitOutcome::committed && !kept_is_new) kept_.reset();
  if (outcome == CommitOutcome::committed || (ended_ && kept_ == nullptr)) return;
  // The fence that failed may have lost what was copied since the version before.
  for (PageSet& stale : stale_) stale.add_all();
  must_save_ = true;
}

perdure_ipv_object_status CopyObject::status() const {
  perdure_ipv_object_status status = InPlaceObject::status();
  status.dram_bytes = bytes_;
  return status;
}

}  // namespace perdure
