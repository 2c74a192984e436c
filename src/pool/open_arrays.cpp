// SPDX-License-Identifier: BSD-3-Clause
#include "pool/open_arrays.hpp"

#include <algorithm>

#include "base/assert.hpp"

namespace perdure {

void OpenArrays::read_names() {
  entries_.clear();
  closed_.clear();
  closed_has_changed_ = true;
  for (auto at = next_.begin(); at != next_.end(); ++at) {
    const Key key{at.shared().name, at.shared().part};
    entries_.emplace(key, at.id());
    if (!is_open(key)) closed_.insert(key);
  }
}

void OpenArrays::note_closed(const Key& key) {
  closed_.insert(key);
  closed_has_changed_ = true;
}

void OpenArrays::note_not_closed(const Key& key) {
  if (closed_.erase(key) != 0) closed_has_changed_ = true;
}

const ArrayId* OpenArrays::find_entry(const Key& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

ArrayId OpenArrays::insert_entry(ArrayEntry entry) {
  const Key key{entry.name, entry.part};
  const ArrayId id = next_.insert(std::move(entry));
  entries_.emplace(key, id);
  return id;
}

void OpenArrays::erase_entry(ArrayId id) {
  const ArrayEntry& entry = next_.shared_at(id);
  const Key key{entry.name, entry.part};
  entries_.erase(key);
  note_not_closed(key);
  next_.erase(id);
}

void OpenArrays::take_entry_of(const ArrayTable& head, ArrayId id) {
  const ArrayEntry& mine = next_.shared_at(id);
  const LeafEntry* const held = head.find(id);
  if (held == nullptr || held->shared->entry.name != mine.name ||
      held->shared->entry.part != mine.part) {
    erase_entry(id);
  } else if (!(*held == next_.leaf_entry(id))) {
    next_.replace(id, *held);
  }
}

std::optional<std::uint32_t> OpenArrays::first_closed_part(const std::string& name) const {
  const auto first = closed_.lower_bound({name, 1});  // 0 is a whole array
  if (first == closed_.end() || first->first != name) return std::nullopt;
  return first->second;
}

VersionedArray& OpenArrays::add(OpenArray open) {
  const std::uint64_t number = opened_++;
  const auto added = open_.emplace(number, std::move(open)).first;
  VersionedArray& array = *added->second.array;
  const Key key{array.name(), array.part()};
  numbers_.emplace(&array, number);
  open_keys_.insert(key);
  note_not_closed(key);
  if (array.is_marked()) {
    array.report_to(woken_, number);
  } else {
    saved_always_.emplace(number, &added->second);
  }
  return array;
}

OpenArrays::OpenArray* OpenArrays::find(const VersionedArray& array) {
  const auto number = numbers_.find(&array);
  return number == numbers_.end() ? nullptr : &open_.at(number->second);
}

OpenArrays::OpenArray OpenArrays::take(const VersionedArray& array, bool named) {
  const std::uint64_t number = numbers_.at(&array);
  OpenArray taken = std::move(open_.at(number));
  const Key key{array.name(), array.part()};
  if (named) {
    ExtentHold& hold = *next_.shared_at(taken.entry).hold;
    hold.named = array.named();
    hold.seen = array.seen();
  }
  numbers_.erase(&array);
  open_keys_.erase(key);
  note_closed(key);
  saved_always_.erase(number);
  woken_.erase(number);
  taken.array->report_to_nobody();
  open_.erase(number);
  return taken;
}

Status OpenArrays::check_fits(const Catalogue& target) const {
  for (auto at = target.arrays.begin(); at != target.arrays.end(); ++at) {
    const ArrayEntry& entry = at.shared();
    const Key key{entry.name, entry.part};
    if (!is_open(key)) continue;
    const ArrayId mine = *find_entry(key);
    const ArrayShape& shape = next_.shared_at(mine).shape;
    if (entry.shape == shape) continue;
    const auto open = std::ranges::find(open_, mine, [](auto& each) { return each.second.entry; });
    const VersionedArray& array = *open->second.array;
    if (array.follows(entry.shape)) continue;
    const bool by_program = array.check_resizable(entry.shape).ok();
    return Status(Code::shape_mismatch, "array ", quoted(entry.name), " is ", entry.shape.text(),
                  " in version ", target.version, ", not ", shape.text(), "; ",
                  (by_program ? "resize it, with a buffer of that size, and restore again"
                              : "close it first"));
  }
  return Status::success();
}

void OpenArrays::adopt(const ArrayTable& target, const Retained& retained) {
  const ArrayTable before = std::exchange(next_, target);
  read_names();
  for (auto& [number, open] : open_) {
    const ArrayEntry mine = before.at(open.entry);
    const Key key{mine.name, mine.part};
    const ArrayId* held = find_entry(key);
    open.known = held != nullptr;
    if (held == nullptr) retained.tell_none(*mine.hold);
    open.entry = held == nullptr ? insert_entry(mine) : *held;
  }
}

void OpenArrays::join(VersionUnderWay& version, const Retained& retained, std::uint32_t open_slot) {
  version.participants.reserve(saved_always_.size() + woken_.size());
  // One that was opened during the last commit had no part in it, and is named by it as before.
  for (const auto& [number, open] : saved_always_) {
    retained.tell(*open->array, open->array->entry().copy, open_slot);
    version.add(*open->array, open->entry);
  }
  for (const auto& [number, array] : woken_) {
    if (array->is_idle()) continue;  // restored since
    retained.tell(*array, array->entry().copy, open_slot);
    array->choose_working();
    version.add(*array, open_.at(number).entry);
  }
  woken_.clear();
}

void OpenArrays::name_copies_of(const VersionUnderWay& version) {
  for (const VersionUnderWay::Participant& participant : version.participants) {
    const OpenArray* open = find(*participant.array);
    if (open == nullptr) continue;  // retired
    const ArrayEntry& entry = participant.array->entry();
    next_.name_copy(open->entry, entry.copy, entry.table_checksum);
  }
}

void OpenArrays::drop_retired(const VersionUnderWay& version, const ArrayTable& head) {
  for (const VersionUnderWay::RetiredArray& retired : version.retired) {
    if (retired.erase) continue;
    const ArrayEntry& entry = retired.array->entry();
    const ArrayId* kept = find_entry({entry.name, entry.part});
    PERDURE_ASSERT(kept != nullptr);
    if (retired.array->is_held()) {
      take_entry_of(head, *kept);
    } else {
      erase_entry(*kept);  // the head may have one of that name that was erased since
    }
  }
}

}  // namespace perdure
