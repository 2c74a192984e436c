// SPDX-License-Identifier: BSD-3-Clause
#include "levels/encode.hpp"

#include <algorithm>

#include "base/checksum.hpp"
#include "base/isal.hpp"

namespace perdure {
namespace {

constexpr std::size_t table_bytes = 32;  // of ISA-L, for each coefficient

bool is_plain(std::span<const unsigned char> coefficients) {
  return std::ranges::all_of(coefficients, [](unsigned char each) { return each <= 1; });
}

// XOR: the vectoriser makes of it what the processor has.
void add_block(std::span<const std::byte> bytes, std::byte* sum) {
  for (std::size_t i = 0; i < bytes.size(); ++i) sum[i] ^= bytes[i];
}

std::vector<unsigned char> row_of(const Coding& coding, std::uint32_t columns, std::uint32_t rows,
                                  std::uint32_t row) {
  std::vector<unsigned char> coefficients;
  for (std::uint32_t column = 0; column < columns; ++column) {
    coefficients.push_back(coding.coefficient(columns, rows, row, column));
  }
  return coefficients;
}

}  // namespace

bool can_encode(const Coding& coding, std::uint32_t columns, std::uint32_t rows) {
  for (std::uint32_t row = 0; row < rows; ++row) {
    if (!is_plain(row_of(coding, columns, rows, row))) return isal() != nullptr;
  }
  return true;
}

Status encoding_refused() {
  return {Code::unsupported,
          "Reed-Solomon needs ISA-L, and this node has no libisal.so.2; install it (Debian: "
          "libisal2), or use redundancy=partner or xor"};
}

Sum::Sum(std::vector<unsigned char> coefficients) : coefficients_(std::move(coefficients)) {
  if (is_plain(coefficients_) && isal() == nullptr) return;
  tables_.resize(table_bytes * coefficients_.size());
  isal()->init_tables(static_cast<int>(coefficients_.size()), 1, coefficients_.data(),
                      tables_.data());
}

void Sum::add(std::size_t index, std::span<const std::byte> bytes, std::byte* sum) const {
  if (coefficients_[index] == 0) return;
  if (tables_.empty()) return add_block(bytes, sum);
  // ISA-L changes neither the tables nor the block.
  auto* const tables = const_cast<unsigned char*>(tables_.data());
  auto* const block =
      const_cast<unsigned char*>(reinterpret_cast<const unsigned char*>(bytes.data()));
  auto* to = reinterpret_cast<unsigned char*>(sum);
  isal()->encode_update(static_cast<int>(bytes.size()), static_cast<int>(coefficients_.size()), 1,
                        static_cast<int>(index), tables, block, &to);
  (void)crc64(sum, 0);  // leaves the vector unit as the application needs it (checksum.cpp)
}

Sum parity_sum(const Coding& coding, std::uint32_t columns, std::uint32_t rows, std::uint32_t row) {
  return Sum(row_of(coding, columns, rows, row));
}

Sum recovery_sum(std::span<const Term> terms) {
  std::vector<unsigned char> coefficients;
  for (const Term& term : terms) coefficients.push_back(term.coefficient);
  return Sum(std::move(coefficients));
}

}  // namespace perdure
