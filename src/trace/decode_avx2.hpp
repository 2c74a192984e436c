// SPDX-License-Identifier: BSD-3-Clause
//
// Decoding of records by AVX2, eight at a time: the fast path of decode_records().
//
// Reads up to decode_spare_bytes beyond the columns. Threads: any. Failure: none; what the numbers
// mean is checked by the caller.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "trace/record.hpp"

namespace perdure::trace {

// A column of packed numbers (record_codec.hpp); `next` moves on as they are decoded.
struct PackedColumn {
  const std::byte* next = nullptr;
  unsigned width = 0;  // bits of a number
};

// What decoding carries from one record to the next.
struct DecodingSums {
  std::uint32_t page = 0;  // of the record before
  std::uint32_t page_max = 0;
  std::uint64_t reads = 0;
  std::uint64_t writes = 0;
};

// Columns of differences of pages, of reads, and of writes.
using PackedColumns = std::array<PackedColumn, 3>;

// Whether this processor and these widths allow it.
bool can_decode_with_avx2(const PackedColumns& columns);

// Fills `to` with groups · 8 records.
void decode_with_avx2(PackedColumns& columns, std::size_t groups, Record* to, DecodingSums& sums);

}  // namespace perdure::trace
