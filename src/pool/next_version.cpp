// SPDX-License-Identifier: BSD-3-Clause
#include "pool/next_version.hpp"

#include <utility>
#include <vector>

#include "pool/box_note.hpp"
#include "pool/unopened_note.hpp"

namespace perdure {

void NextVersion::begin(const Catalogue& parent, std::uint64_t version, std::uint64_t incarnation) {
  catalogue_ = parent;
  catalogue_.version = version;
  catalogue_.parent = parent.version;
  catalogue_.incarnation = incarnation;
  arrays_.read_names();
}

const GlobalBox* NextVersion::box_of(const VersionedArray& array) const {
  const auto box = boxes_.find({array.name(), array.part()});
  return box == boxes_.end() ? nullptr : &box->second;
}

Status NextVersion::set_box(const VersionedArray& array, GlobalBox box, const CheckRoom& room) {
  const std::vector<std::uint64_t>& extents = array.entry().shape.extents;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const std::uint64_t end = box.global_shape[i];
    if (box.first[i] <= end && extents[i] <= end - box.first[i]) continue;
    return Status(Code::invalid_argument, "array ", quoted(array.name()), " has ", extents[i],
                  " elements in dimension ", i, ", from ", box.first[i], " on: beyond the global ",
                  end);
  }
  if (put_box(catalogue_, array.name(), array.part(), &box)) {
    const Status has_room = room();
    if (!has_room.ok()) catalogue_.scalars.pop_back();
    PERDURE_TRY(has_room);
  }
  boxes_[{array.name(), array.part()}] = std::move(box);
  return Status::success();
}

void NextVersion::forget_box(const std::string& name, std::uint32_t part) {
  if (!boxes_.empty()) boxes_.erase({name, part});
  put_box(catalogue_, name, part, nullptr);
}

std::optional<GlobalBox> NextVersion::noted_box(const std::string& name, std::uint32_t part) const {
  const GlobalBoxes noted = boxes_of(catalogue_);
  const auto found = noted.find({name, part});
  return found == noted.end() ? std::nullopt : std::optional(found->second);
}

void NextVersion::undo_box(const std::string& name, std::uint32_t part,
                           const std::optional<GlobalBox>& before) {
  boxes_.erase({name, part});
  put_box(catalogue_, name, part, before ? &*before : nullptr);
}

void NextVersion::put_boxes(Catalogue& catalogue) const {
  for (const auto& [array, box] : boxes_) put_box(catalogue, array.first, array.second, &box);
}

void NextVersion::note_unopened(const CheckRoom& room) {
  if (!arrays_.closed_has_changed()) return;
  const bool is_new = put_unopened(catalogue_, arrays_.closed());
  if (arrays_.closed().empty() || room().ok()) return;
  if (is_new) {
    catalogue_.scalars.pop_back();
  } else {
    put_unopened(catalogue_, {});
  }
}

Status NextVersion::note(const CheckRoom& room) {
  scalars_.save();
  note_unopened(room);
  return files_.note();
}

VersionUnderWay NextVersion::begin_commit(const Retained& retained, std::uint32_t open_slot) {
  VersionUnderWay version;
  version.catalogue = catalogue_;
  version.begun_from = catalogue_.arrays;
  version.iteration = iteration();
  arrays_.join(version, retained, open_slot);
  return version;
}

void NextVersion::follow(const VersionUnderWay& version) {
  catalogue_.version = version.catalogue.version + 1;
  catalogue_.parent = version.catalogue.version;
  if (catalogue_.arrays.is_same(version.begun_from)) {
    catalogue_.arrays = version.catalogue.arrays;
  } else {
    arrays_.name_copies_of(version);
  }
  arrays_.drop_retired(version, version.catalogue.arrays);
}

Status NextVersion::check_fits(const Catalogue& target) const {
  PERDURE_TRY(arrays_.check_fits(target));
  return scalars_.check_fits(target);
}

void NextVersion::adopt(const Catalogue& target, const Retained& retained,
                        std::uint64_t incarnation) {
  Catalogue next = target;
  next.version = catalogue_.version;
  next.parent = target.version;
  next.incarnation = incarnation;
  arrays_.adopt(target.arrays, retained);
  next.arrays = catalogue_.arrays;
  put_boxes(next);
  scalars_.adopt(next);
  catalogue_ = std::move(next);
}

void NextVersion::adopt_scalars(Catalogue held) {
  put_boxes(held);
  scalars_.adopt(held);
  catalogue_.scalars = std::move(held.scalars);
}

}  // namespace perdure
