// SPDX-License-Identifier: BSD-3-Clause
#include "pool/changed_pages.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "pool/buffer_memory.hpp"

namespace perdure {

void ChangedPages::choose_way(std::uint64_t size_bytes) {
  const bool tracked = !asked_.compare && PageTracker::is_worth_it(size_bytes, asked_.tracker);
  way_ = asked_.marks ? Way::marks : tracked ? Way::tracker : Way::comparison;
}

void ChangedPages::begin(std::uint64_t size_bytes, std::uint64_t page_bytes, std::uint32_t copies) {
  page_bytes_ = page_bytes;
  changed_ = PageSet(size_bytes, page_bytes);
  marked_ = PageSet(by_marks() ? size_bytes : 0, page_bytes);
  stale_.assign(copies, changed_);
  add_all();
}

void ChangedPages::resize(std::uint64_t from_bytes, std::uint64_t size_bytes, bool others) {
  changed_.resize(size_bytes);
  if (by_marks()) marked_.resize(size_bytes);
  // The last page that stays is another part of its block's checksum.
  const std::uint64_t same = std::max<std::uint64_t>(std::min(from_bytes, size_bytes), 1) - 1;
  for (PageSet& stale : stale_) {
    stale.resize(size_bytes);
    stale.add_pages({others ? 0 : same / page_bytes_, stale.pages()});
  }
}

void ChangedPages::add_all() {
  for (PageSet& stale : stale_) stale.add_all();
}

void ChangedPages::restore(std::uint32_t from_copy) {
  changed_.clear();
  marked_.clear();
  add_all();
  stale_[from_copy].clear();
}

Status ChangedPages::follow(std::byte* contents, std::uint64_t size_bytes) {
  tracker_.reset();
  if (!by_tracker() || size_bytes == 0) return Status::success();
  PERDURE_TRY_ASSIGN(tracker_, PageTracker::create(contents, size_bytes, asked_.tracker));
  return Status::success();
}

void ChangedPages::follow_again(std::byte* contents, std::uint64_t size_bytes, Way way) {
  changed_.add_all();
  way_ = way;
  if (!follow(contents, size_bytes).ok() || !watch().ok()) way_ = Way::comparison;
}

Status ChangedPages::watch() {
  if (!tracker_) return Status::success();
  PERDURE_TRY(tracker_->watch());
  unseen_ = stores_may_go_unseen();
  return Status::success();
}

void ChangedPages::stop(bool mapped) {
  if (tracker_) tracker_->stop(mapped);
}

void ChangedPages::expose() {
  if (tracker_) tracker_->expose();
}

void ChangedPages::mark(ByteRange bytes) {
  marked_.add(bytes);
}

Status ChangedPages::end_following() {
  compare_now_ = compare_now_ || (!by_marks() && (!tracker_ || unseen_));
  return tracker_ ? tracker_->collect(changed_) : Status::success();
}

Status ChangedPages::collect() {
  if (by_marks()) {
    changed_.add(marked_);
    marked_.clear();
  }
  if (!tracker_) return Status::success();
  compare_now_ = compare_now_ || unseen_;
  unseen_ = true;  // note_unseen() may know better
  return tracker_->collect(changed_);
}

// What was not committed is stale in all copies.
void ChangedPages::find_differences(std::span<const std::byte> contents,
                                    const std::byte* committed) {
  for (std::uint64_t page = 0; page < changed_.pages() && committed != nullptr; ++page) {
    if (changed_.has(page)) continue;
    const std::uint64_t begin = page * page_bytes_;
    const std::uint64_t count = std::min(page_bytes_, contents.size() - begin);
    if (std::memcmp(contents.data() + begin, committed + begin, count) == 0) continue;
    changed_.add_pages({page, page + 1});
  }
}

const PageSet& ChangedPages::lacking(std::uint32_t copy, std::span<const std::byte> contents,
                                     const std::byte* committed) {
  if (way_ == Way::comparison || std::exchange(compare_now_, false)) {
    find_differences(contents, committed);
  }
  stale_[copy].add(changed_);
  return stale_[copy];
}

void ChangedPages::commit(std::uint32_t copy, bool is_of_now) {
  for (PageSet& stale : stale_) stale.add(changed_);
  if (!is_of_now) return;
  stale_[copy].clear();
  changed_.clear();
}

}  // namespace perdure
