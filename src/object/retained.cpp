#include "object/retained.hpp"

#include "object/versioned_array.hpp"

namespace perdure {

Retained::Retained(const Geometry& geometry)
    : block_bytes_(geometry.block_bytes), slots_(geometry.slots) {}

void Retained::note(const Catalogue& catalogue) {
  std::vector<NamedArray>& arrays = slots_[slot_of(catalogue.version)];
  arrays.clear();
  for (const ArrayEntry& entry : catalogue.arrays) {
    arrays.push_back({{entry.first_offset, entry.end_offset(block_bytes_)}, entry.copy});
  }
}

void Retained::forget(std::uint32_t slot) {
  slots_[slot].clear();
}

void Retained::tell(VersionedArray& array, const ArrayEntry& entry, std::uint32_t open) const {
  for (std::uint32_t slot = 0; slot < slots_.size(); ++slot) {
    std::uint32_t copy = VersionedArray::no_copy;
    for (const NamedArray& named : slots_[slot]) {
      if (named.extent.begin == entry.first_offset) copy = named.copy;
    }
    array.note_named(slot, slot == open ? VersionedArray::no_copy : copy);
  }
}

void Retained::add_extents(std::vector<Extent>& used) const {
  for (const auto& arrays : slots_) {
    for (const NamedArray& named : arrays) used.push_back(named.extent);
  }
}

void add_extents(const Catalogue& catalogue, std::uint64_t block_bytes, std::vector<Extent>& used) {
  for (const ArrayEntry& entry : catalogue.arrays) {
    used.push_back({entry.first_offset, entry.end_offset(block_bytes)});
  }
}

}  // namespace perdure
