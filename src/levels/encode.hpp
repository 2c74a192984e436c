// SPDX-License-Identifier: BSD-3-Clause
//
// Encode: sums of blocks over GF(2^8), by ISA-L (XOR also without it), which give parity, or give
// back what was lost. What they are sums of says a coding (coding.hpp).
//
// Threads: a Sum is not changed by its calls. Failure: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "levels/coding.hpp"

namespace perdure {

// Whether parity of these stripes can be computed here: for more than XOR ISA-L is needed.
bool can_encode(const Coding& coding, std::uint32_t columns, std::uint32_t rows);
// Code::unsupported, with the remedy.
Status encoding_refused();

// A block as the sum of k others, each times its coefficient.
class Sum {
 public:
  explicit Sum(std::vector<unsigned char> coefficients);
  unsigned char coefficient(std::size_t index) const { return coefficients_[index]; }
  // Adds what `bytes`, of the block with that index among the k, contribute to `sum`, as long.
  void add(std::size_t index, std::span<const std::byte> bytes, std::byte* sum) const;

 private:
  std::vector<unsigned char> coefficients_;
  std::vector<unsigned char> tables_;  // of ISA-L; empty: all coefficients are 0 or 1
};

// Row `row` of `rows`, as the sum of all `columns`.
Sum parity_sum(const Coding& coding, std::uint32_t columns, std::uint32_t rows, std::uint32_t row);
// What was lost, as the sum of these blocks.
Sum recovery_sum(std::span<const Term> terms);

}  // namespace perdure
