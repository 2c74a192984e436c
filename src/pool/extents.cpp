// SPDX-License-Identifier: BSD-3-Clause
#include "pool/extents.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "pmem/flush.hpp"
#include "pool/block_checksum.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t huge_page_bytes = std::uint64_t{2} << 20;

// Of a new extent of an array that gets another size, over what it needs now.
constexpr double room_factor = 1.25;

// Gaps that are looked at before one is taken that has room however it is aligned.
constexpr int tight_gaps = 8;

}  // namespace

FreeSpace::FreeSpace(std::uint64_t begin, std::vector<Extent> used) : tail_(begin) {
  std::ranges::sort(used, {}, &Extent::begin);
  for (const Extent& extent : used) {
    if (extent.begin > tail_) add_gap(tail_, extent.begin);
    tail_ = std::max(tail_, extent.end);
  }
}

void FreeSpace::add_gap(std::uint64_t begin, std::uint64_t end) {
  gaps_.emplace(begin, end);
  by_size_.emplace(end - begin, begin);
}

void FreeSpace::remove_gap(std::map<std::uint64_t, std::uint64_t>::iterator gap) {
  by_size_.erase({gap->second - gap->first, gap->first});
  gaps_.erase(gap);
}

std::map<std::uint64_t, std::uint64_t>::iterator FreeSpace::find_gap(std::uint64_t bytes,
                                                                     std::uint64_t align) {
  auto gap = by_size_.lower_bound({bytes, 0});
  for (int i = 0; i < tight_gaps && gap != by_size_.end(); ++i, ++gap) {
    if (align_up(gap->second, align) + bytes <= gap->second + gap->first) {
      return gaps_.find(gap->second);
    }
  }
  gap = by_size_.lower_bound({bytes + align - 1, 0});
  return gap == by_size_.end() ? gaps_.end() : gaps_.find(gap->second);
}

Extent FreeSpace::take(std::uint64_t bytes, std::uint64_t align) {
  PERDURE_ASSERT(bytes != 0);
  const auto gap = find_gap(bytes, align);
  return gap == gaps_.end() ? take_from_end(bytes, align) : take_from(gap, bytes, align);
}

Extent FreeSpace::take_units(std::uint64_t bytes, std::uint64_t unit) {
  if (by_size_.empty()) return take_from_end(bytes, unit);
  const auto [free_bytes, begin] = *by_size_.rbegin();
  const std::uint64_t skipped = align_up(begin, unit) - begin;
  if (free_bytes < skipped + unit) return take_from_end(bytes, unit);
  return take_from(gaps_.find(begin), std::min(bytes, (free_bytes - skipped) / unit * unit), unit);
}

Extent FreeSpace::take_from_end(std::uint64_t bytes, std::uint64_t align) {
  const std::uint64_t begin = align_up(tail_, align);
  if (begin != tail_) add_gap(tail_, begin);
  tail_ = begin + bytes;
  return {begin, tail_};
}

Extent FreeSpace::take_from(std::map<std::uint64_t, std::uint64_t>::iterator gap,
                            std::uint64_t bytes, std::uint64_t align) {
  const auto [free_begin, free_end] = *gap;
  remove_gap(gap);
  const std::uint64_t begin = align_up(free_begin, align);
  if (begin != free_begin) add_gap(free_begin, begin);
  if (begin + bytes != free_end) add_gap(begin + bytes, free_end);
  return {begin, begin + bytes};
}

void FreeSpace::give_back(const Extent& extent) {
  auto [begin, end] = extent;
  PERDURE_ASSERT(begin < end && end <= tail_);
  const auto after = gaps_.lower_bound(begin);
  if (after != gaps_.begin()) {
    const auto before = std::prev(after);
    PERDURE_ASSERT(before->second <= begin);
    if (before->second == begin) {
      begin = before->first;
      remove_gap(before);
    }
  }
  if (after != gaps_.end() && after->first == end) {
    end = after->second;
    remove_gap(after);
  }
  if (end == tail_) {
    tail_ = begin;
  } else {
    add_gap(begin, end);
  }
}

ExtentHold::ExtentHold(std::shared_ptr<FreeSpace> space, const Extent& extent)
    : space_(std::move(space)), extent_(extent) {}

std::uint64_t alignment_of(const ArrayEntry& entry, const Geometry& geometry) {
  // Large copies begin on huge pages, so that the kernel can map them by such. Small ones to which
  // only the pool stores fill lines, not pages: there may be a million of them.
  if (is_packed(entry.shape.mode, entry.size_bytes, geometry.align_bytes)) {
    return std::min<std::uint64_t>(geometry.align_bytes, cache_line_bytes);
  }
  const std::uint64_t least = entry.size_bytes >= huge_page_bytes ? huge_page_bytes : 1;
  return std::max<std::uint64_t>(geometry.align_bytes, least);
}

Result<ArrayEntry> lay_out(const std::string& name, std::uint32_t part, const ArrayShape& shape,
                           const Geometry& geometry, bool spare_copy,
                           std::optional<DataChecksum> checksum) {
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
  if (checksum) {
    entry.checksum = *checksum;
  } else {
    PERDURE_TRY_ASSIGN(entry.checksum, chosen_data_checksum());
  }
  const std::uint64_t page_bytes = geometry.block_bytes / pages_per_block;
  const bool pages = shape.mode == ArrayMode::log && has_pages(geometry.block_bytes);
  if (pages && bytes > page_bytes) entry.checksum = by_pages(entry.checksum);
  const std::uint64_t table_bytes = 8 * block_count(entry.size_bytes, geometry.block_bytes);
  const std::uint64_t table_align = std::min<std::uint64_t>(align, cache_line_bytes);
  entry.table_stride_bytes = align_up(std::max<std::uint64_t>(table_bytes, 8), table_align);
  entry.table_first_offset =
      align_up(entry.copy_offset(entry.copies - 1) + entry.size_bytes, table_align);
  return entry;
}

namespace {

// Whether the copies, and their tables, can be of so many bytes where they are.
bool has_room(const ArrayEntry& entry, std::uint64_t bytes, const Geometry& geometry) {
  const std::uint64_t end = entry.hold->extent().end;
  const std::uint32_t last = entry.copies - 1;
  const std::uint64_t copies_end = entry.shape.checksums ? entry.table_first_offset : end;
  if (bytes > entry.stride_bytes || entry.copy_offset(last) + bytes > copies_end) return false;
  const bool packed = is_packed(entry.shape.mode, bytes, geometry.align_bytes);
  const std::uint64_t align = packed ? 1 : geometry.align_bytes;
  if (entry.first_offset % align != 0 || entry.stride_bytes % align != 0) return false;
  if (!entry.shape.checksums) return true;
  const std::uint64_t table = 8 * block_count(bytes, geometry.block_bytes);
  return table <= entry.table_stride_bytes && entry.table_offset(last) + table <= end;
}

}  // namespace

void place(ArrayEntry& entry, const std::shared_ptr<FreeSpace>& space, const Geometry& geometry) {
  const std::uint64_t bytes = entry.end_offset(geometry.block_bytes);
  const Extent extent = space->take(bytes, alignment_of(entry, geometry));
  entry.first_offset += extent.begin;
  if (entry.shape.checksums) entry.table_first_offset += extent.begin;
  entry.hold = std::make_shared<ExtentHold>(space, extent);
}

Result<ArrayEntry> resized(const ArrayEntry& entry, const ArrayShape& shape, bool leave,
                           const std::shared_ptr<FreeSpace>& space, const Geometry& geometry,
                           std::optional<DataChecksum> checksum) {
  PERDURE_TRY_ASSIGN(const auto bytes, checked_bytes(shape));
  ArrayEntry next = entry;
  next.shape = shape;
  next.size_bytes = bytes;
  const bool fits = !leave && has_room(entry, bytes, geometry);
  const auto most = static_cast<double>(std::max<std::uint64_t>(bytes, 1)) * room_factor_max;
  if (fits && static_cast<double>(entry.stride_bytes) <= most) return next;
  const std::uint64_t element = element_bytes(shape.type);
  const auto wanted = static_cast<std::uint64_t>(static_cast<double>(bytes) * room_factor);
  ArrayShape roomy = shape;
  roomy.extents = {std::min(wanted, array_bytes_max) / element};
  const bool spare = entry.spare_copies != 0;
  PERDURE_TRY_ASSIGN(auto laid, lay_out(entry.name, entry.part, roomy, geometry, spare, checksum));
  if (fits && laid.stride_bytes >= entry.stride_bytes) return next;
  place(laid, space, geometry);
  laid.shape = shape;
  laid.size_bytes = bytes;
  return laid;
}

}  // namespace perdure
