// SPDX-License-Identifier: BSD-3-Clause
#include "product.hpp"

#include <algorithm>

namespace matpower {
namespace {

// A tile of the columns: its rows of b, of a few thousand, stay in the second-level cache while all
// rows of the product pass by, and its sums of one row in the first-level cache.
constexpr std::size_t tile_columns = 256;
// So many cells of up to 255 add up to less than 2^16.
constexpr std::size_t sums_of_16_bits = 257;
constexpr std::uint32_t cell_max = 255;

Cell narrowed(std::uint64_t sum, Arithmetic arithmetic) {
  if (arithmetic == Arithmetic::modular) return static_cast<Cell>(sum);
  return static_cast<Cell>(std::min<std::uint64_t>(sum, cell_max));
}

}  // namespace

void ProductBlock::start(const Block& block) {
  block_ = block;
  sums_.assign(block.cells(), 0);
}

void ProductBlock::list_ones(const Cell* a, std::size_t inner) {
  ones_.clear();
  row_end_.clear();
  for (std::size_t row = 0; row < block_.rows.size(); ++row, a += inner) {
    for (std::size_t k = 0; k < inner; ++k) {
      if (a[k] != 0) ones_.push_back(static_cast<std::uint32_t>(k));
    }
    row_end_.push_back(ones_.size());
  }
}

void ProductBlock::add(const Cell* a, const Cell* b, std::size_t inner) {
  list_ones(a, inner);
  for (std::size_t first = 0; first < block_.columns.size(); first += tile_columns) {
    add_tile(b, first, std::min(tile_columns, block_.columns.size() - first));
  }
}

// The heart of the program: for each 1 of A, a row of the tile is added. Sums of 16 bits take half
// the vector registers of sums of 32, into which they are emptied before they can overflow.
void ProductBlock::add_tile(const Cell* b, std::size_t first, std::size_t width) {
  const std::size_t columns = block_.columns.size();
  std::size_t one = 0;
  for (std::size_t row = 0; row < row_end_.size(); ++row) {
    while (one < row_end_[row]) {
      const std::size_t end = std::min(row_end_[row], one + sums_of_16_bits);
      std::uint16_t sums[tile_columns] = {};
      for (; one < end; ++one) {
        const Cell* cells = b + ones_[one] * columns + first;
        for (std::size_t j = 0; j < width; ++j) {
          sums[j] = static_cast<std::uint16_t>(sums[j] + cells[j]);
        }
      }
      std::uint32_t* total = sums_.data() + row * columns + first;
      for (std::size_t j = 0; j < width; ++j) total[j] += sums[j];
    }
  }
}

std::uint64_t ProductBlock::narrow(Arithmetic arithmetic, Cell* cells) const {
  std::uint64_t over = 0;
  for (std::size_t i = 0; i < sums_.size(); ++i) {
    if (sums_[i] > cell_max) ++over;
    cells[i] = narrowed(sums_[i], arithmetic);
  }
  return over;
}

std::uint64_t ProductBlock::trace() const {
  const std::uint64_t begin = std::max(block_.rows.begin, block_.columns.begin);
  const std::uint64_t end = std::min(block_.rows.end, block_.columns.end);
  std::uint64_t trace = 0;
  for (std::uint64_t i = begin; i < end; ++i) {
    trace += sums_[(i - block_.rows.begin) * block_.columns.size() + (i - block_.columns.begin)];
  }
  return trace;
}

std::vector<Cell> naive_power(const std::vector<Cell>& adjacency, std::uint64_t nodes,
                              std::uint64_t power, Arithmetic arithmetic) {
  std::vector<Cell> current = adjacency;
  std::vector<Cell> next(adjacency.size());
  for (std::uint64_t made = 1; made < power; ++made) {
    for (std::size_t i = 0; i < nodes; ++i) {
      for (std::size_t j = 0; j < nodes; ++j) {
        std::uint64_t sum = 0;
        // From the right, where Cannon's products are from the left.
        for (std::size_t k = 0; k < nodes; ++k) {
          sum += std::uint64_t{current[i * nodes + k]} * adjacency[k * nodes + j];
        }
        next[i * nodes + j] = narrowed(sum, arithmetic);
      }
    }
    current.swap(next);
  }
  return current;
}

}  // namespace matpower
