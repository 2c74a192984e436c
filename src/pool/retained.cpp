// SPDX-License-Identifier: BSD-3-Clause
#include "pool/retained.hpp"

#include <algorithm>

#include "pool/versioned_array.hpp"

namespace perdure {

Retained::Retained(const Geometry& geometry)
    : block_bytes_(geometry.block_bytes), slots_(geometry.slots) {}

void Retained::note(const Catalogue& catalogue) {
  Slot& slot = slots_[slot_of(catalogue.version)];
  slot.version = VersionInfo{catalogue.version, catalogue.parent, catalogue.committed_ns, false};
  slot.held = true;
  slot.arrays.clear();
  for (const ArrayEntry& entry : catalogue.arrays) {
    slot.arrays.push_back({{entry.first_offset, entry.end_offset(block_bytes_)}, entry.copy});
  }
}

void Retained::drop(std::uint64_t version, std::uint64_t parent) {
  Slot& slot = slots_[slot_of(version)];
  slot.version = VersionInfo{version, parent, 0, false};
  slot.held = false;
  slot.arrays.clear();
}

void Retained::forget(std::uint32_t slot) {
  slots_[slot].version.reset();
  slots_[slot].held = false;
  slots_[slot].arrays.clear();
}

bool Retained::holds(std::uint64_t version) const {
  const Slot& slot = slots_[slot_of(version)];
  return slot.held && slot.version->version == version;
}

std::uint64_t Retained::parent_of(std::uint64_t version) const {
  PERDURE_ASSERT(holds(version));
  return slots_[slot_of(version)].version->parent;
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
  std::sort(list.begin(), list.end(),
            [](const VersionInfo& a, const VersionInfo& b) { return a.version > b.version; });
  return list;
}

void Retained::tell(VersionedArray& array, const ArrayEntry& entry, std::uint32_t open) const {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    std::uint32_t copy = VersionedArray::no_copy;
    for (const NamedArray& named : slots_[slot].arrays) {
      if (named.extent.begin == entry.first_offset) copy = named.copy;
    }
    array.note_named(slot, slot == open ? VersionedArray::no_copy : copy);
  }
}

void Retained::add_extents(std::vector<Extent>& used) const {
  for (const Slot& slot : slots_) {
    for (const NamedArray& named : slot.arrays) used.push_back(named.extent);
  }
}

void add_extents(const Catalogue& catalogue, std::uint64_t block_bytes, std::vector<Extent>& used) {
  for (const ArrayEntry& entry : catalogue.arrays) {
    used.push_back({entry.first_offset, entry.end_offset(block_bytes)});
  }
}

}  // namespace perdure
