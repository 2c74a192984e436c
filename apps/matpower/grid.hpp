// SPDX-License-Identifier: BSD-3-Clause
//
// Grid: q x q ranks, and the blocks of an n x n matrix, one for each of them. Block row i holds the
// rows [n i / q, n (i + 1) / q): all blocks differ by at most one row, whether q divides n or not.
#pragma once

#include <cstddef>
#include <cstdint>

namespace matpower {

struct Range {
  std::uint64_t begin, end;
  std::size_t size() const { return end - begin; }
};

struct Block {
  Range rows, columns;
  std::size_t cells() const { return rows.size() * columns.size(); }
};

struct Grid {
  std::uint64_t nodes;
  int side;         // q
  int row, column;  // of this rank

  Range range(int index) const {
    const auto i = static_cast<std::uint64_t>(index);
    const auto q = static_cast<std::uint64_t>(side);
    return {nodes * i / q, nodes * (i + 1) / q};
  }
  Block block(int block_row, int block_column) const {
    return {range(block_row), range(block_column)};
  }
  Block own() const { return block(row, column); }
};

// The grid of all ranks. Throws SharedError if they make no square, or one of more blocks than
// rows.
Grid make_grid(std::uint64_t nodes);

}  // namespace matpower
