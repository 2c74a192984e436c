// SPDX-License-Identifier: BSD-3-Clause
#include "levels/encode.hpp"

#include <algorithm>

#include "base/assert.hpp"
#include "base/checksum.hpp"
#include "base/isal.hpp"

namespace perdure {
namespace {

constexpr std::size_t table_bytes = 32;  // of ISA-L, for each coefficient

// Blocks as sums of the columns: one of them, then the rows.
std::vector<unsigned char> matrix(std::uint32_t columns, std::uint32_t rows) {
  PERDURE_ASSERT(can_encode(rows));
  std::vector<unsigned char> all(std::size_t{columns + rows} * columns);
  isal()->cauchy_matrix(all.data(), static_cast<int>(columns + rows), static_cast<int>(columns));
  return all;
}

// XOR: the vectoriser makes of it what the processor has.
void add_block(std::span<const std::byte> bytes, std::byte* sum) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum[i] ^= bytes[i];
}

}  // namespace

bool can_encode(std::uint32_t rows) {
  return rows <= 1 || isal() != nullptr;
}

Status encoding_refused() {
  return {Code::unsupported,
          "Reed-Solomon needs ISA-L, and this node has no libisal.so.2; install it (Debian: "
          "libisal2), or use redundancy=partner or xor"};
}

Sum::Sum(std::span<const unsigned char> coefficients)
    : blocks_(static_cast<int>(coefficients.size())) {
  const bool plain =
      std::ranges::all_of(coefficients, [](unsigned char coefficient) { return coefficient == 1; });
  if (plain && isal() == nullptr) return;
  std::vector<unsigned char> copy(coefficients.begin(), coefficients.end());
  tables_.resize(table_bytes * coefficients.size());
  isal()->init_tables(blocks_, 1, copy.data(), tables_.data());
}

void Sum::add(std::size_t index, std::span<const std::byte> bytes, std::byte* sum) const {
  if (tables_.empty()) return add_block(bytes, sum);
  // ISA-L changes neither the tables nor the block.
  auto* const tables = const_cast<unsigned char*>(tables_.data());
  auto* const block =
      const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  auto* to = reinterpret_cast<unsigned char*>(sum);
  isal()->encode_update(static_cast<int>(bytes.size()), blocks_, 1, static_cast<int>(index), tables,
                        block, &to);
  (void)crc64(sum, 0);  // leaves the vector unit as the application needs it (checksum.cpp)
}

Sum parity_sum(std::uint32_t columns, std::uint32_t rows, std::uint32_t row) {
  if (rows == 1) return Sum(std::vector<unsigned char>(columns, 1));
  const auto all = matrix(columns, rows);
  return Sum(std::span(all).subspan(std::size_t{columns + row} * columns, columns));
}

Sum recovery_sum(std::uint32_t columns, std::uint32_t rows, std::uint32_t lost,
                 std::span<const std::uint32_t> blocks) {
  PERDURE_ASSERT(blocks.size() == columns && lost < columns);
  // Of all blocks but one, that one is the sum; a block that is there is not asked for.
  if (rows == 1) return Sum(std::vector<unsigned char>(columns, 1));
  const auto all = matrix(columns, rows);
  std::vector<unsigned char> given;
  for (const std::uint32_t block : blocks) {
    const auto row = std::span(all).subspan(std::size_t{block} * columns, columns);
    given.insert(given.end(), row.begin(), row.end());
  }
  std::vector<unsigned char> inverse(given.size());
  const int failed = isal()->invert_matrix(given.data(), inverse.data(), static_cast<int>(columns));
  PERDURE_ASSERT(failed == 0);
  return Sum(std::span(inverse).subspan(std::size_t{lost} * columns, columns));
}

}  // namespace perdure
