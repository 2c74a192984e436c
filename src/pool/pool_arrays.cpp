// SPDX-License-Identifier: BSD-3-Clause
//
// Pool: opening, loading and closing of arrays, and scalars.
#include <algorithm>
#include <cstring>

#include "base/agreement.hpp"
#include "pool/pool.hpp"

namespace perdure {

// The name may be used: it is not open, and no commit under way decides what it holds.
Status Pool::check_closed(const std::string& name, std::uint32_t part) const {
  if (open_keys_.contains({name, part})) {
    return {Code::invalid_argument, "array " + quoted(name) + " is open"};
  }
  const auto kept = [&](const VersionUnderWay::RetiredArray& held) {
    return !held.erase && held.array->part() == part && held.array->name() == name;
  };
  const VersionUnderWay* version = under_way_.pending_version();
  if (version != nullptr && std::any_of(version->retired.begin(), version->retired.end(), kept)) {
    return {Code::wrong_state, "array " + quoted(name) +
                                   " was closed during a commit; call perdure_commit_wait() "
                                   "before opening it again"};
  }
  return Status::success();
}

const ArrayId* Pool::find_entry(const ArrayKey& key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

// After next_.arrays has become another table.
void Pool::know_entries() {
  entries_.clear();
  closed_parts_.clear();
  for (auto at = next_.arrays.begin(); at != next_.arrays.end(); ++at) {
    const ArrayKey key{at.shared().name, at.shared().part};
    entries_.emplace(key, at.id());
    if (key.second != 0 && !open_keys_.contains(key)) closed_parts_.insert(key);
  }
}

// Before the device grows, which nobody may use meanwhile.
void Pool::wait_for_saver() {
  if (under_way_.saving()) saver_->wait_until_idle();
}

// G4 of catalogue_pages.hpp.
Status Pool::make_room_for_catalogue() {
  if (slots_.has_room_for_arrays(next_)) return Status::success();
  const std::uint64_t nodes = std::max(next_.arrays.nodes(), retained_.nodes_max());
  const std::uint64_t pages = slots_.count() * nodes;
  if (pages_->has(pages)) return Status::success();
  wait_for_saver();
  return pages_->reserve(pages);
}

// Makes the entry of a new array, and room for it.
Status Pool::plan_array(const std::string& name, const ArrayShape& shape,
                        const ArrayOptions& options) {
  PERDURE_TRY_ASSIGN(auto entry,
                     lay_out(name, options.part, shape, region_.geometry, options.spare_copy));
  place(entry, space_, region_.geometry);
  retained_.tell_none(*entry.hold);
  const std::uint64_t end = entry.hold->extent().end;
  if (end > device_->size_bytes()) {
    wait_for_saver();
    PERDURE_TRY(grow_device(*device_, end));
  }
  const ArrayId id = next_.arrays.insert(std::move(entry));
  entries_.emplace(ArrayKey{name, options.part}, id);
  const Status room = make_room_for_catalogue();
  if (!room.ok()) drop_entry(id);
  return room;
}

Status Pool::add_array(ArrayId entry, bool known, const ArrayOptions& options) {
  PERDURE_TRY_ASSIGN(auto array, VersionedArray::create(*device_, writer_, next_.arrays.at(entry),
                                                        region_.geometry, options));
  OpenArray open{std::move(array), entry, known};
  if (restarted_) PERDURE_TRY(load_array(open));
  const std::uint64_t number = opened_++;
  const auto added = open_.emplace(number, std::move(open)).first;
  VersionedArray& opened = *added->second.array;
  const ArrayKey key{opened.name(), opened.part()};
  numbers_.emplace(&opened, number);
  open_keys_.insert(key);
  closed_parts_.erase(key);
  if (opened.is_marked()) {
    opened.report_to(woken_, number);
  } else {
    saved_always_.emplace(number, &added->second);
  }
  return Status::success();
}

Pool::OpenArrays::iterator Pool::find_open(const VersionedArray& array) {
  const auto number = numbers_.find(&array);
  return number == numbers_.end() ? open_.end() : open_.find(number->second);
}

// It is open no more. Which of its copies the slots name stays known.
std::unique_ptr<VersionedArray> Pool::take_open(OpenArrays::iterator open) {
  auto array = std::move(open->second.array);
  const ArrayKey key{array->name(), array->part()};
  if (restarted_) {  // before, it knew nothing of them
    ExtentHold& hold = *next_.arrays.shared_at(open->second.entry).hold;
    hold.named = array->named();
    hold.seen = array->seen();
  }
  numbers_.erase(array.get());
  open_keys_.erase(key);
  if (key.second != 0) closed_parts_.insert(key);
  saved_always_.erase(open->first);
  woken_.erase(open->first);
  open_.erase(open);
  return array;
}

Result<VersionedArray*> Pool::open_array_local(const std::string& name, const ArrayShape& shape,
                                               const ArrayOptions& options) {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(check_open_to_others());
  PERDURE_TRY(check_closed(name, options.part));
  const ArrayKey key{name, options.part};
  const bool known = find_entry(key) != nullptr;
  if (!known) PERDURE_TRY(plan_array(name, shape, options));
  const ArrayId entry = *find_entry(key);
  if (const ArrayShape& held = next_.arrays.shared_at(entry).shape; !(held == shape)) {
    return Status(Code::shape_mismatch, "array " + quoted(name) + " is " + held.text() +
                                            " in the pool, not " + shape.text() +
                                            "; open it as it is, or use another name "
                                            "or another pool");
  }
  Status added = add_array(entry, known, options);
  if (added.ok()) return open_.rbegin()->second.array.get();
  if (!known) drop_entry(entry);
  return added;
}

Result<VersionedArray*> Pool::open_array(const std::string& name, const ArrayShape& shape,
                                         const ArrayOptions& options) {
  auto opened = open_array_local(name, shape, options);
  const Status all = agree(group_, opened.ok() ? Status::success() : opened.status());
  if (all.ok()) return opened;
  if (opened.ok()) undo_open();
  return all;
}

// The file may have grown, which the next array will use.
void Pool::undo_open() {
  const auto last = std::prev(open_.end());
  const ArrayId entry = last->second.entry;
  const bool known = last->second.known;
  take_open(last);
  if (!known) drop_entry(entry);
}

void Pool::drop_entry(ArrayId id) {
  const ArrayEntry& entry = next_.arrays.shared_at(id);
  const ArrayKey key{entry.name, entry.part};
  entries_.erase(key);
  closed_parts_.erase(key);
  next_.arrays.erase(id);
}

Status Pool::set_box(const VersionedArray& array, GlobalBox box) {
  const std::vector<std::uint64_t>& extents = array.entry().shape.extents;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::uint64_t end = box.global_shape[i];
    if (box.first[i] <= end && extents[i] <= end - box.first[i]) continue;
    return {Code::invalid_argument,
            "array " + quoted(array.name()) + " has " + std::to_string(extents[i]) +
                " elements in dimension " + std::to_string(i) + ", from " +
                std::to_string(box.first[i]) + " on: beyond the global " + std::to_string(end)};
  }
  boxes_[{array.name(), array.entry().part}] = std::move(box);
  return Status::success();
}

Status Pool::close_array(VersionedArray* array, bool erase) {
  const auto found = find_open(*array);
  if (found == open_.end()) {
    return {Code::invalid_argument, "this is not an open array of the pool"};
  }
  VersionUnderWay* version = under_way_.pending_version();
  const bool part_of_commit = version != nullptr && version->has(*array);
  if (part_of_commit) PERDURE_TRY(before_write(*array));
  const ArrayId entry = found->second.entry;
  const bool keep = !erase && (found->second.known || array->committed() || part_of_commit);
  auto closed = take_open(found);
  if (part_of_commit) version->retired.push_back({std::move(closed), !keep});
  if (!keep) drop_entry(entry);
  return Status::success();
}

// The commit that they took part in has ended.
void Pool::drop_retired(const VersionUnderWay& version, bool committed) {
  for (const VersionUnderWay::RetiredArray& retired : version.retired) {
    if (retired.erase) continue;
    const ArrayEntry& entry = retired.array->entry();
    const ArrayId* kept = find_entry({entry.name, entry.part});
    PERDURE_ASSERT(kept != nullptr);
    if (committed) {
      next_.arrays.name_copy(*kept, entry.copy, entry.table_checksum);
    } else if (!retired.array->committed()) {
      drop_entry(*kept);
    }
  }
}

Status Pool::load_array(OpenArray& open) {
  const ArrayEntry entry = next_.arrays.at(open.entry);
  VersionedArray& array = *open.array;
  retained_.tell(*entry.hold, entry.copy);
  for (std::uint32_t slot = 0; slot < slots_.count(); ++slot) {
    const bool is_open = slot == open_slot_index();
    array.note_named(slot, is_open ? VersionedArray::no_copy : entry.hold->named[slot]);
  }
  array.set_seen(entry.hold->seen);
  return located(open.known ? array.start_restored(entry) : array.start_empty(entry));
}

Status Pool::load_all() {
  const TokenScope token(options_.token.get(), IoKind::read);
  for (auto& [number, open] : open_) PERDURE_TRY(load_array(open));
  return Status::success();
}

std::optional<std::uint32_t> Pool::first_closed_part(const std::string& name) const {
  const auto first = closed_parts_.lower_bound({name, 0});
  if (first == closed_parts_.end() || first->first != name) return std::nullopt;
  return first->second;
}

// Scalars that the head lacks stay as they are.
void Pool::load_scalars() {
  for (const BoundScalar& scalar : scalars_) {
    if (!scalar.known) continue;
    const ScalarEntry& entry = next_.scalars[scalar.entry];
    std::memcpy(scalar.address, entry.bytes.data(), entry.bytes.size());
  }
}

Status Pool::bind_scalar(const std::string& name, void* address, std::size_t bytes) {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(check_name(name));
  if (address == nullptr || bytes == 0 || bytes > scalar_bytes_max) {
    return {Code::invalid_argument, "scalar " + quoted(name) + " needs an address and 1 to " +
                                        std::to_string(scalar_bytes_max) + " bytes, not " +
                                        std::to_string(bytes)};
  }
  auto& entries = next_.scalars;
  const std::size_t known = entries.size();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&name](const ScalarEntry& e) { return e.name == name; });
  const auto index = static_cast<std::size_t>(found - entries.begin());
  if (found == entries.end()) {
    entries.push_back({name, std::vector<std::byte>(bytes)});
    Status room = make_room_for_catalogue();
    if (body_bytes_with_tree(next_) > slots_.body_bytes_max() &&
        !slots_.has_room_for_arrays(next_)) {
      room = {Code::no_space, "the pool's slots have no room for scalar " + quoted(name)};
    }
    if (!room.ok()) {
      entries.pop_back();
      return room;
    }
  } else {
    const bool bound = std::any_of(scalars_.begin(), scalars_.end(),
                                   [index](const BoundScalar& s) { return s.entry == index; });
    if (bound) return {Code::invalid_argument, "scalar " + quoted(name) + " is already bound"};
    if (found->bytes.size() != bytes) {
      return {Code::shape_mismatch, "scalar " + quoted(name) + " has " +
                                        std::to_string(found->bytes.size()) +
                                        " bytes in the pool, not " + std::to_string(bytes)};
    }
    if (restarted_) std::memcpy(address, found->bytes.data(), bytes);
  }
  scalars_.push_back({address, index, index < known});
  return Status::success();
}

void Pool::save_scalars() {
  for (const BoundScalar& scalar : scalars_) {
    std::vector<std::byte>& bytes = next_.scalars[scalar.entry].bytes;
    std::memcpy(bytes.data(), scalar.address, bytes.size());
  }
}

}  // namespace perdure
