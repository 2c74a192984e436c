// SPDX-License-Identifier: BSD-3-Clause
//
// Encode: sums of blocks over GF(2^8), by ISA-L (XOR also without it), which give parity, or give
// back what was lost.
//
// Blocks of a stripe are numbered: columns of data from 0 to k - 1, rows of parity from k on. Any k
// of them give all others, as every square part of a Cauchy matrix can be inverted (J. Blömer et
// al., An XOR-Based Erasure-Resilient Coding Scheme, ICSI TR-95-048, 1995). With one row it is XOR.
//
// Threads: a Sum is not changed by its calls. Failure: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/status.hpp"

namespace perdure {

// Whether parity of so many rows can be computed here: for more than one ISA-L is needed.
bool can_encode(std::uint32_t rows);
// Code::unsupported, with the remedy.
Status encoding_refused();

// A block as the sum of k others, each times its coefficient.
class Sum {
 public:
  explicit Sum(std::span<const unsigned char> coefficients);
  // Adds what `bytes`, of the block with that index among the k, contribute to `sum`, as long.
  void add(std::size_t index, std::span<const std::byte> bytes, std::byte* sum) const;

 private:
  int blocks_;
  std::vector<unsigned char> tables_;
};

// Row `row` of `rows`, as the sum of all `columns`.
Sum parity_sum(std::uint32_t columns, std::uint32_t rows, std::uint32_t row);
// Column `lost`, as the sum of `columns` other blocks, by their numbers.
Sum recovery_sum(std::uint32_t columns, std::uint32_t rows, std::uint32_t lost,
                 std::span<const std::uint32_t> blocks);

}  // namespace perdure
