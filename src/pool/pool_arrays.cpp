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
  const auto same = [&](const auto& held) {
    return held.array->part() == part && held.array->name() == name;
  };
  if (std::any_of(open_.begin(), open_.end(), same)) {
    return {Code::invalid_argument, "array " + quoted(name) + " is open"};
  }
  const auto kept = [&](const VersionUnderWay::RetiredArray& held) {
    return !held.erase && same(held);
  };
  const VersionUnderWay* version = under_way_.pending_version();
  if (version != nullptr && std::any_of(version->retired.begin(), version->retired.end(), kept)) {
    return {Code::wrong_state, "array " + quoted(name) +
                                   " was closed during a commit; call perdure_commit_wait() "
                                   "before opening it again"};
  }
  return Status::success();
}

// Makes the entry of a new array, the last of next_.arrays, and room for it.
Status Pool::plan_array(const std::string& name, const ArrayShape& shape,
                        const ArrayOptions& options) {
  PERDURE_TRY_ASSIGN(auto laid_out,
                     lay_out(name, options.part, shape, region_.geometry, options.spare_copy));
  ArrayEntry entry = std::move(laid_out);
  std::vector<Extent> used;
  retained_.add_extents(used);
  add_extents(next_, region_.geometry.block_bytes, used);
  if (const VersionUnderWay* version = under_way_.pending_version(); version != nullptr) {
    add_extents(version->catalogue, region_.geometry.block_bytes, used);
  }
  place(entry, std::move(used), region_.data_offset, region_.geometry);
  const std::uint64_t end = entry.end_offset(region_.geometry.block_bytes);
  if (end > device_->size_bytes()) {
    if (under_way_.saving()) saver_->wait_until_idle();  // it uses the device meanwhile
    PERDURE_TRY(device_->resize(end));
  }
  next_.arrays.push_back(std::move(entry));
  next_.allocated_end = std::max(next_.allocated_end, end);
  if (body_bytes(next_) <= slots_.body_bytes_max()) return Status::success();
  drop_entry(next_.arrays.size() - 1);
  return {Code::no_space, "the pool's slots have no room for array " + quoted(name)};
}

Status Pool::add_array(std::size_t entry, bool known, const ArrayOptions& options) {
  PERDURE_TRY_ASSIGN(auto array, VersionedArray::create(*device_, writer_, next_.arrays[entry],
                                                        region_.geometry, options));
  open_.push_back({std::move(array), entry, known});
  const Status loaded = restarted_ ? load_array(open_.back()) : Status::success();
  if (!loaded.ok()) open_.pop_back();
  return loaded;
}

Result<VersionedArray*> Pool::open_array_local(const std::string& name, const ArrayShape& shape,
                                               const ArrayOptions& options) {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(check_open_to_others());
  PERDURE_TRY(check_closed(name, options.part));
  const ArrayEntry* known = next_.find_array(name, options.part);
  if (known != nullptr && !(known->shape == shape)) {
    return Status(Code::shape_mismatch, "array " + quoted(name) + " is " + known->shape.text() +
                                            " in the pool, not " + shape.text() +
                                            "; open it as it is, or use another name "
                                            "or another pool");
  }
  if (known == nullptr) PERDURE_TRY(plan_array(name, shape, options));
  const std::size_t entry = known == nullptr
                                ? next_.arrays.size() - 1
                                : static_cast<std::size_t>(known - next_.arrays.data());
  Status added = add_array(entry, known != nullptr, options);
  if (added.ok()) return open_.back().array.get();
  if (known == nullptr) drop_entry(entry);
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
  const std::size_t entry = open_.back().entry;
  const bool known = open_.back().known;
  open_.pop_back();
  if (!known) drop_entry(entry);
}

void Pool::drop_entry(std::size_t index) {
  next_.arrays.erase(next_.arrays.begin() + static_cast<std::ptrdiff_t>(index));
  for (OpenArray& open : open_) {
    if (open.entry > index) --open.entry;
  }
  next_.allocated_end = region_.data_offset;
  for (const ArrayEntry& entry : next_.arrays) {
    next_.allocated_end =
        std::max(next_.allocated_end, entry.end_offset(region_.geometry.block_bytes));
  }
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
  const auto found = std::find_if(open_.begin(), open_.end(), [array](const OpenArray& open) {
    return open.array.get() == array;
  });
  if (found == open_.end()) {
    return {Code::invalid_argument, "this is not an open array of the pool"};
  }
  VersionUnderWay* version = under_way_.pending_version();
  const bool part_of_commit = version != nullptr && version->has(array);
  if (part_of_commit) PERDURE_TRY(before_write(*array));
  const std::size_t entry = found->entry;
  const bool keep = !erase && (found->known || array->committed() || part_of_commit);
  if (part_of_commit) version->retired.push_back({std::move(found->array), !keep});
  open_.erase(found);
  if (!keep) drop_entry(entry);
  return Status::success();
}

// The commit that they took part in has ended.
void Pool::drop_retired(const VersionUnderWay& version, bool committed) {
  for (const VersionUnderWay::RetiredArray& retired : version.retired) {
    if (retired.erase) continue;
    const ArrayEntry& entry = retired.array->entry();
    const ArrayEntry* kept = next_.find_array(entry.name, entry.part);
    PERDURE_ASSERT(kept != nullptr);
    const auto index = static_cast<std::size_t>(kept - next_.arrays.data());
    if (committed) {
      next_.arrays[index] = entry;
    } else if (!retired.array->committed()) {
      drop_entry(index);
    }
  }
}

Status Pool::load_array(OpenArray& open) {
  const ArrayEntry& entry = next_.arrays[open.entry];
  retained_.tell(*open.array, entry, open_slot_index());
  return located(open.known ? open.array->start_restored(entry) : open.array->start_empty(entry));
}

Status Pool::load_all() {
  const TokenScope token(options_.token.get(), IoKind::read);
  for (OpenArray& open : open_) PERDURE_TRY(load_array(open));
  return Status::success();
}

std::vector<std::uint32_t> Pool::closed_parts(const std::string& name) const {
  std::vector<std::uint32_t> parts;
  for (const ArrayEntry& entry : next_.arrays) {
    if (entry.name == name && check_closed(name, entry.part).ok()) parts.push_back(entry.part);
  }
  std::sort(parts.begin(), parts.end());
  return parts;
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
    if (body_bytes(next_) > slots_.body_bytes_max()) {
      entries.pop_back();
      return {Code::no_space, "the pool's slots have no room for scalar " + quoted(name)};
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
