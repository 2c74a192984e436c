#include "levels/encode.hpp"

#include <isa-l/erasure_code.h>

#include <algorithm>

#include "base/assert.hpp"
#include "base/checksum.hpp"

namespace perdure {
namespace {

constexpr std::size_t table_bytes = 32;  // of ISA-L, for each coefficient

// Blocks as sums of the columns: one of them, then the rows.
std::vector<unsigned char> matrix(std::uint32_t columns, std::uint32_t rows) {
  std::vector<unsigned char> all(std::size_t{columns + rows} * columns);
  gf_gen_cauchy1_matrix(all.data(), static_cast<int>(columns + rows), static_cast<int>(columns));
  if (rows == 1) std::fill(all.end() - columns, all.end(), 1);
  return all;
}

}  // namespace

Sum::Sum(std::span<const unsigned char> coefficients)
    : blocks_(static_cast<int>(coefficients.size())), tables_(table_bytes * coefficients.size()) {
  std::vector<unsigned char> copy(coefficients.begin(), coefficients.end());
  ec_init_tables(blocks_, 1, copy.data(), tables_.data());
}

void Sum::add(std::size_t index, std::span<const std::byte> bytes, std::byte* sum) const {
  // ISA-L changes neither the tables nor the block.
  auto* const tables = const_cast<unsigned char*>(tables_.data());
  auto* const block =
      const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  auto* to = reinterpret_cast<unsigned char*>(sum);
  ec_encode_data_update(static_cast<int>(bytes.size()), blocks_, 1, static_cast<int>(index), tables,
                        block, &to);
  (void)crc64(sum, 0);  // leaves the vector unit as the application needs it (checksum.cpp)
}

Sum parity_sum(std::uint32_t columns, std::uint32_t rows, std::uint32_t row) {
  const auto all = matrix(columns, rows);
  return Sum(std::span(all).subspan(std::size_t{columns + row} * columns, columns));
}

Sum recovery_sum(std::uint32_t columns, std::uint32_t rows, std::uint32_t lost,
                 std::span<const std::uint32_t> blocks) {
  PERDURE_ASSERT(blocks.size() == columns && lost < columns);
  const auto all = matrix(columns, rows);
  std::vector<unsigned char> given;
  for (const std::uint32_t block : blocks) {
    const auto row = std::span(all).subspan(std::size_t{block} * columns, columns);
    given.insert(given.end(), row.begin(), row.end());
  }
  std::vector<unsigned char> inverse(given.size());
  PERDURE_ASSERT(gf_invert_matrix(given.data(), inverse.data(), static_cast<int>(columns)) == 0);
  return Sum(std::span(inverse).subspan(std::size_t{lost} * columns, columns));
}

}  // namespace perdure
