// SPDX-License-Identifier: BSD-3-Clause
#include "pool/extents.hpp"

#include <algorithm>

#include "pmem/flush.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

}  // namespace

std::uint64_t alignment_of(const ArrayEntry& entry, const Geometry& geometry) {
  // Large copies begin on huge pages, so that the kernel can map them by such.
  const std::uint64_t least = entry.size_bytes >= huge_page_bytes ? huge_page_bytes : 1;
  return std::max<std::uint64_t>(geometry.align_bytes, least);
}

Result<ArrayEntry> lay_out(const std::string& name, std::uint32_t part, const ArrayShape& shape,
                           const Geometry& geometry, bool spare_copy) {
  PERDURE_TRY(check_name(name));
  PERDURE_TRY_ASSIGN(auto bytes, checked_bytes(shape));
  ArrayEntry entry;
  entry.name = name;
  entry.part = part;
  entry.shape = shape;
  entry.size_bytes = bytes;
  entry.spare_copies = spare_copy ? 1 : 0;
  const std::uint32_t versions = geometry.slots + entry.spare_copies;
  entry.copies = shape.mode == ArrayMode::flush ? 1 : versions;
  const std::uint64_t align = alignment_of(entry, geometry);
  entry.stride_bytes = align_up(std::max<std::uint64_t>(entry.size_bytes, 1), align);
  if (!shape.checksums) return entry;
  const std::uint64_t table_bytes = 8 * block_count(entry.size_bytes, geometry.block_bytes);
  const std::uint64_t table_align = std::min<std::uint64_t>(align, cache_line_bytes);
  entry.table_stride_bytes = align_up(std::max<std::uint64_t>(table_bytes, 8), table_align);
  entry.table_first_offset =
      align_up(entry.copy_offset(entry.copies - 1) + entry.size_bytes, table_align);
  return entry;
}

void place(ArrayEntry& entry, std::vector<Extent> used, std::uint64_t begin,
           const Geometry& geometry) {
  std::sort(used.begin(), used.end(),
            [](const Extent& a, const Extent& b) { return a.begin < b.begin; });
  const std::uint64_t bytes = entry.end_offset(geometry.block_bytes);
  const std::uint64_t align = alignment_of(entry, geometry);
  std::uint64_t offset = align_up(begin, align);
  for (const Extent& extent : used) {
    if (extent.begin >= offset && extent.begin - offset >= bytes) break;
    offset = std::max(offset, align_up(extent.end, align));
  }
  entry.first_offset += offset;
  if (entry.shape.checksums) entry.table_first_offset += offset;
}

}  // namespace perdure
