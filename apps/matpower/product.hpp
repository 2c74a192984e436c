// SPDX-License-Identifier: BSD-3-Clause
//
// Products of blocks, in the memory of one rank.
//
// Cells count walks. Saturating, a cell is min(255, the count); modular, it is the count modulo
// 256. Both are homomorphisms of the counts' semiring: narrowing after every product gives the same
// cells as narrowing the exact counts at the end, in any order of sums, so any number of ranks
// agree.
#pragma once

#include <cstdint>
#include <vector>

#include "adjacency.hpp"
#include "options.hpp"

namespace matpower {

// Sums of one block of a product; exact below 2^32, as cells of A are 0 or 1 and n < 2^24.
class ProductBlock {
 public:
  // Sets all sums to 0 and the size to that of `block`.
  void start(const Block& block);

  // Adds a x b: `a`, with `inner` columns, is a block of A, and most of it is 0; `b` has as many
  // rows.
  void add(const Cell* a, const Cell* b, std::size_t inner);

  // The sums as cells; counts those that were more than a cell holds.
  std::uint64_t narrow(Arithmetic arithmetic, Cell* cells) const;

  // The sum of the cells on the diagonal of the matrix, which are not narrowed.
  std::uint64_t trace() const;

 private:
  void list_ones(const Cell* a, std::size_t inner);
  void add_tile(const Cell* b, std::size_t first, std::size_t width);

  Block block_{};
  std::vector<std::uint32_t> sums_;
  std::vector<std::uint32_t> ones_;   // columns of the ones of the block of A, row by row
  std::vector<std::size_t> row_end_;  // where each row's end in `ones_`
};

// The power of a matrix of nodes x nodes cells by three nested loops.
std::vector<Cell> naive_power(const std::vector<Cell>& adjacency, std::uint64_t nodes,
                              std::uint64_t power, Arithmetic arithmetic);

}  // namespace matpower
