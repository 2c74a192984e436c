// SPDX-License-Identifier: BSD-3-Clause
#include "pool/block_checksum.hpp"

#include <algorithm>
#include <array>

#include "base/assert.hpp"

namespace perdure {

std::uint64_t sum_of_pages(DataChecksum kind, std::span<const std::uint64_t> of_pages) {
  PERDURE_ASSERT(is_of_pages(kind));
  std::uint64_t sum = 0;
  for (const std::uint64_t& of_page : of_pages) {
    sum = add_data_piece(of_one_page(kind), &of_page, sizeof of_page, sum);
  }
  return sum;
}

std::uint64_t block_checksum(DataChecksum kind, std::uint64_t block_bytes, const std::byte* bytes,
                             std::uint64_t count, std::uint64_t* of_pages) {
  if (!is_of_pages(kind)) return data_checksum(kind, bytes, count);
  const std::uint64_t page_bytes = block_bytes / pages_per_block;
  std::array<std::uint64_t, pages_per_block> own;
  std::uint64_t* const sums = of_pages == nullptr ? own.data() : of_pages;
  std::uint64_t page = 0;
  for (std::uint64_t at = 0; at < count; at += page_bytes, ++page) {
    sums[page] = data_checksum(of_one_page(kind), bytes + at, std::min(page_bytes, count - at));
  }
  return sum_of_pages(kind, {sums, page});
}

}  // namespace perdure
