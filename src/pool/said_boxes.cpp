// SPDX-License-Identifier: BSD-3-Clause
#include "pool/said_boxes.hpp"

#include <vector>

#include "pool/box_note.hpp"

namespace perdure {
namespace {

SaidBoxes::Key key_of(const VersionedArray& array) {
  return {array.name(), array.part()};
}

}  // namespace

const GlobalBox* SaidBoxes::of(const VersionedArray& array) const {
  const auto box = said_.find(key_of(array));
  return box == said_.end() ? nullptr : &box->second;
}

std::optional<GlobalBox> SaidBoxes::noted(const Key& key) const {
  return find_box(next_, key.first, key.second);
}

void SaidBoxes::put(const Key& key, const GlobalBox* box) {
  const auto before = noted(key);
  if (!before && box == nullptr) return;
  before_.try_emplace(key, before);
  put_box(next_, key.first, key.second, box);
}

Status SaidBoxes::say(const VersionedArray& array, GlobalBox box,
                      const std::function<Status()>& room) {
  const std::vector<std::uint64_t>& extents = array.entry().shape.extents;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::uint64_t end = box.global_shape[i];
    if (box.first[i] <= end && extents[i] <= end - box.first[i]) continue;
    return Status(Code::invalid_argument, "array ", quoted(array.name()), " has ", extents[i],
                  " elements in dimension ", i, ", from ", box.first[i], " on: beyond the global ",
                  end);
  }
  const Key key = key_of(array);
  const auto before = noted(key);
  if (put_box(next_, key.first, key.second, &box)) {
    const Status has_room = room();
    if (!has_room.ok()) next_.scalars.pop_back();
    PERDURE_TRY(has_room);
  }
  before_.try_emplace(key, before);
  said_[key] = std::move(box);
  return Status::success();
}

void SaidBoxes::forget(const Key& key) {
  said_.erase(key);
  put(key, nullptr);
}

void SaidBoxes::leave(const Key& key) {
  said_.erase(key);
  const auto changed = before_.find(key);
  if (changed == before_.end()) return;
  put_box(next_, key.first, key.second, changed->second ? &*changed->second : nullptr);
}

void SaidBoxes::undo(const Key& key, const std::optional<GlobalBox>& before) {
  said_.erase(key);
  put(key, before ? &*before : nullptr);
}

void SaidBoxes::adopt(Catalogue& parent) {
  before_.clear();
  of_parent_.clear();
  for (const auto& [key, box] : said_) {
    before_.try_emplace(key, find_box(parent, key.first, key.second));
    put_box(parent, key.first, key.second, &box);
  }
}

void SaidBoxes::begin_commit() {
  fail();  // one that was given up
  of_parent_ = std::exchange(before_, {});
}

void SaidBoxes::fail() {
  for (auto& [key, note] : of_parent_) before_[key] = std::move(note);
  of_parent_.clear();
}

}  // namespace perdure
