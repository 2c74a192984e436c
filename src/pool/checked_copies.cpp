// SPDX-License-Identifier: BSD-3-Clause
#include "pool/checked_copies.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "pmem/region.hpp"
#include "pmem/shared_view.hpp"

namespace perdure {

Result<std::unique_ptr<CheckedCopies>> CheckedCopies::create(const Device& device,
                                                             const ArrayEntry& entry) {
  FilePages pages{device.file(), {}, entry.first_offset, 0, true};
  const bool has_pages = entry.first_offset % view_page_bytes == 0 &&
                         (entry.copies == 1 || entry.stride_bytes % view_page_bytes == 0);
  if (pages.file.path.empty() || !has_pages) {
    return Status(Code::unsupported, "array ", quoted(entry.name), " of ", device.describe().name,
                  " has no pages of its own; leave out PERDURE_CHECK");
  }
  const std::uint64_t copy_bytes =
      align_up(std::max<std::uint64_t>(entry.size_bytes, 1), view_page_bytes);
  pages.bytes = entry.copy_offset(entry.copies - 1) + copy_bytes - entry.first_offset;
  PERDURE_TRY_ASSIGN(pages.identity, identify_file(pages.file.path));
  PERDURE_TRY_ASSIGN(auto mapped, map_shared_view(pages, nullptr, false));
  std::unique_ptr<CheckedCopies> copies(new CheckedCopies(mapped, pages.bytes, entry.stride_bytes));
  for (std::uint32_t copy = 0; copy < entry.copies; ++copy) {
    std::byte* const at = copies->at(copy);
    PERDURE_TRY_ASSIGN(auto guard, StoreGuard::create(at, copy_bytes, at, entry.name));
    copies->guards_.push_back(std::move(guard));
  }
  return copies;
}

CheckedCopies::~CheckedCopies() {
  guards_.clear();
  unmap_shared_view(mapped_, mapped_bytes_);
}

// Of pages that are mapped; the system can only lack memory for what it notes of them.
void CheckedCopies::allow_only(std::uint32_t copy) {
  allow_none();
  PERDURE_ASSERT(guards_[copy]->allow(true).ok());
}

void CheckedCopies::allow_none() {
  for (const auto& guard : guards_) PERDURE_ASSERT(guard->allow(false).ok());
}

}  // namespace perdure
