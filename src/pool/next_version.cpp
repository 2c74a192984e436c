// SPDX-License-Identifier: BSD-3-Clause
#include "pool/next_version.hpp"

#include <utility>

#include "pool/unopened_note.hpp"

namespace perdure {

void NextVersion::begin(const Catalogue& parent, std::uint64_t version, std::uint64_t incarnation) {
  catalogue_ = parent;
  catalogue_.version = version;
  catalogue_.parent = parent.version;
  catalogue_.incarnation = incarnation;
  arrays_.read_names();
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
  boxes_.begin_commit();
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
  boxes_.follow();
}

void NextVersion::fail(const VersionUnderWay& version, const ArrayTable& head) {
  arrays_.drop_retired(version, head);
  boxes_.fail();
  for (const VersionUnderWay::RetiredArray& retired : version.retired) {
    if (!retired.erase) leave_box({retired.array->name(), retired.array->part()});
  }
}

void NextVersion::leave_box(const SaidBoxes::Key& key) {
  if (arrays_.find_entry(key) == nullptr) {
    boxes_.forget(key);
  } else {
    boxes_.leave(key);
  }
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
  boxes_.adopt(next);
  scalars_.adopt(next);
  catalogue_ = std::move(next);
}

void NextVersion::adopt_scalars(Catalogue held) {
  boxes_.adopt(held);
  scalars_.adopt(held);
  catalogue_.scalars = std::move(held.scalars);
}

}  // namespace perdure
