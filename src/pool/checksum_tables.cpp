// SPDX-License-Identifier: BSD-3-Clause
#include "pool/checksum_tables.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "pool/block_checksum.hpp"

namespace perdure {

std::uint64_t unit_bytes(const ArrayEntry& entry, std::uint64_t block_bytes) {
  const bool of_pages = entry.shape.checksums
                            ? is_of_pages(entry.checksum)
                            : entry.shape.mode == ArrayMode::log && has_pages(block_bytes);
  return of_pages ? block_bytes / pages_per_block : block_bytes;
}

void ChecksumTables::make(const ArrayEntry& entry, std::uint64_t block_bytes) {
  kind_ = entry.checksum;
  block_bytes_ = block_bytes;
  size_bytes_ = entry.size_bytes;
  const std::size_t copies = entry.shape.checksums ? entry.copies : 0;
  const bool pages = is_of_pages(kind_);
  blocks_.assign(copies, std::vector<std::uint64_t>(block_count(size_bytes_, block_bytes_)));
  pages_.assign(pages ? copies : 0,
                std::vector<std::uint64_t>(pages ? block_count(size_bytes_, page_bytes()) : 0));
}

std::uint64_t ChecksumTables::page_bytes() const {
  return block_bytes_ / pages_per_block;
}

void ChecksumTables::resize(std::uint64_t size_bytes) {
  size_bytes_ = size_bytes;
  for (auto& table : blocks_) table.resize(block_count(size_bytes, block_bytes_));
  for (auto& sums : pages_) sums.resize(block_count(size_bytes, page_bytes()));
}

void ChecksumTables::sum_blocks_of(std::uint32_t copy, PageRun pages) {
  if (!has_pages()) return;
  const std::vector<std::uint64_t>& of_pages = pages_[copy];
  for (std::uint64_t block = pages.first / pages_per_block; block * pages_per_block < pages.end;
       ++block) {
    const std::uint64_t first = block * pages_per_block;
    const std::uint64_t count = std::min(pages_per_block, of_pages.size() - first);
    blocks_[copy][block] = sum_of_pages(kind_, {of_pages.data() + first, count});
  }
}

void ChecksumTables::sum(std::uint32_t copy, const std::byte* contents) {
  std::vector<std::uint64_t>& table = blocks_[copy];
  for (std::uint64_t block = 0; block < table.size(); ++block) {
    const std::uint64_t begin = block * block_bytes_;
    table[block] = block_checksum(kind_, block_bytes_, contents + begin,
                                  std::min(block_bytes_, size_bytes_ - begin));
  }
}

void ChecksumTables::store(Device& device, const ArrayEntry& entry, std::uint32_t copy) const {
  if (!is_there()) return;
  device.copy(entry.table_offset(copy), blocks_[copy].data(), 8 * blocks_[copy].size());
}

std::uint64_t ChecksumTables::checksum_of(std::uint32_t copy) const {
  return crc64(blocks_[copy].data(), 8 * blocks_[copy].size());
}

}  // namespace perdure
