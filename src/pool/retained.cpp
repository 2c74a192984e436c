// SPDX-License-Identifier: BSD-3-Clause
#include "pool/retained.hpp"

#include <algorithm>

#include "pool/versioned_array.hpp"

namespace perdure {

Retained::Retained(const Geometry& geometry) : slots_(geometry.slots) {}

Retained::Slot& Retained::change(std::uint32_t slot) {
  slots_[slot].changed = ++now_;
  return slots_[slot];
}

void Retained::note(const Catalogue& catalogue) {
  Slot& slot = change(slot_of(catalogue.version));
  slot.version = VersionInfo{catalogue.version, catalogue.parent, catalogue.committed_ns, false};
  slot.held = true;
  slot.arrays = catalogue.arrays;
}

void Retained::drop(std::uint64_t version, std::uint64_t parent) {
  Slot& slot = change(slot_of(version));
  slot.version = VersionInfo{version, parent, 0, false};
  slot.held = false;
  slot.arrays = {};
}

void Retained::forget(std::uint32_t index) {
  Slot& slot = change(index);
  slot.version.reset();
  slot.held = false;
  slot.arrays = {};
}

bool Retained::holds(std::uint64_t version) const {
  const Slot& slot = slots_[slot_of(version)];
  return slot.held && slot.version->version == version;
}

std::uint64_t Retained::parent_of(std::uint64_t version) const {
  PERDURE_ASSERT(holds(version));
  return slots_[slot_of(version)].version->parent;
}

const ArrayTable& Retained::arrays_of(std::uint64_t version) const {
  PERDURE_ASSERT(holds(version));
  return slots_[slot_of(version)].arrays;
}

std::vector<VersionInfo> Retained::versions(std::uint64_t head, std::uint32_t open) const {
  std::vector<VersionInfo> list;
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const bool listed = slot != open && slots_[slot].held && slots_[slot].version->version != 0;
    if (listed) list.push_back(*slots_[slot].version);
  }
  for (VersionInfo& version : list) version.abandoned = true;
  // The line of the head, through deleted versions as well, until a slot has a newer version.
  for (std::uint64_t ancestor = head; ancestor != 0;) {
    const std::uint32_t slot = slot_of(ancestor);
    const auto& known = slots_[slot].version;
    if (slot == open || !known || known->version != ancestor) break;
    for (VersionInfo& version : list) {
      if (version.version == ancestor) version.abandoned = false;
    }
    ancestor = known->parent;
  }
  std::ranges::sort(list, std::greater<>(), &VersionInfo::version);
  return list;
}

void Retained::tell(VersionedArray& array, std::uint32_t copy, std::uint32_t open) const {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const bool names = slots_[slot].held && slot != open && array.committed();
    if (slots_[slot].changed > array.seen() || slot == open) {
      array.note_named(slot, names ? copy : VersionedArray::no_copy);
    }
  }
  array.set_seen(now_);
}

void Retained::tell(ExtentHold& hold, std::uint32_t copy) const {
  hold.named.resize(slots_.size(), VersionedArray::no_copy);
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].changed <= hold.seen) continue;
    hold.named[slot] =
        static_cast<std::uint8_t>(slots_[slot].held ? copy : VersionedArray::no_copy);
  }
  hold.seen = now_;
}

void Retained::tell_none(ExtentHold& hold) const {
  hold.named.assign(slots_.size(), VersionedArray::no_copy);
  hold.seen = now_;
}

void Retained::tell_all() const {
  for (const Slot& slot : slots_) {
    for (auto at = slot.arrays.begin(); at != slot.arrays.end(); ++at) tell_none(*at.shared().hold);
  }
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    const ArrayTable& arrays = slots_[slot].arrays;
    for (auto at = arrays.begin(); at != arrays.end(); ++at) {
      at.shared().hold->named[slot] = static_cast<std::uint8_t>(at.leaf_entry().copy);
    }
  }
}

std::vector<const ArrayTable*> Retained::tables() const {
  std::vector<const ArrayTable*> tables;
  for (const Slot& slot : slots_) tables.push_back(&slot.arrays);
  return tables;
}

std::uint64_t Retained::nodes_max() const {
  std::uint64_t most = 0;
  for (const Slot& slot : slots_) most = std::max(most, slot.arrays.nodes());
  return most;
}

}  // namespace perdure
