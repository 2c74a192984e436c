// SPDX-License-Identifier: BSD-3-Clause
#include "eddy/elliptic.hpp"

#include <algorithm>
#include <cmath>

#include "npb/ranks.hpp"

namespace eddy {

namespace ranks = npb::ranks;
using npb::Direction;

Elliptic::Elliptic(const Grid& grid)
    : grid_(grid),
      first_column_(ranks::block_begin(grid.n, ranks::rank())),
      along_x_(grid.n),
      along_y_(grid.n),
      pairs_(2 * grid.n * grid.rows),
      eigenvalues_(grid.n) {
  const double h = grid.h();
  for (Index k = 0; k < grid.n; ++k) {
    eigenvalues_.get()[k] = (2 - 2 * std::cos(static_cast<double>(k) * h)) / (h * h);
  }
  if (ranks::count() == 1) return;
  // Ranks share columns as they share rows: each has as many.
  columns_ = Array<double>(2 * grid.n * grid.rows);
  messages_ = Array<double>(2 * grid.n * grid.rows);
  for (int r = 0; r < ranks::count(); ++r) {
    const Index width = ranks::block_begin(grid.n, r + 1) - ranks::block_begin(grid.n, r);
    row_counts_.push_back(2 * grid.rows * width);
    column_counts_.push_back(2 * width * grid.rows);
  }
}

// Messages have the parts [row][x of the rank] of the rows, one rank after the other. Calls
// copy(place in the messages, place in the rows, count) for each piece.
template <typename Copy>
void Elliptic::for_parts(Copy copy) const {
  Index message = 0;
  for (int r = 0; r < ranks::count(); ++r) {
    const Index from = ranks::block_begin(grid_.n, r);
    const Index count = 2 * (ranks::block_begin(grid_.n, r + 1) - from);
    for (Index j = 0; j < grid_.rows; ++j) {
      copy(message, 2 * (j * grid_.n + from), count);
      message += count;
    }
  }
}

Elliptic::Columns Elliptic::to_columns() {
  if (ranks::count() == 1) return {pairs_.get(), grid_.n};
  const double* rows = pairs_.get();
  double* messages = messages_.get();
  for_parts([&](Index message, Index at, Index count) {
    std::copy(rows + at, rows + at + count, messages + message);
  });
  ranks::exchange(messages, row_counts_, columns_.get(), column_counts_);
  return {columns_.get(), grid_.rows};
}

void Elliptic::from_columns() {
  if (ranks::count() == 1) return;
  double* rows = pairs_.get();
  const double* messages = messages_.get();
  ranks::exchange(columns_.get(), column_counts_, messages_.get(), row_counts_);
  for_parts([&](Index message, Index at, Index count) {
    std::copy(messages + message, messages + message + count, rows + at);
  });
}

void Elliptic::divide(const Columns& columns, double shift, double factor) const {
  const double* eigenvalues = eigenvalues_.get();
  const auto points = static_cast<double>(grid_.n * grid_.n);  // neither transform divides
  for (Index l = 0; l < grid_.n; ++l) {
    double* row = columns.values + 2 * l * columns.count;
    for (Index k = 0; k < columns.count; ++k) {
      const double symbol = shift + factor * (eigenvalues[l] + eigenvalues[first_column_ + k]);
      const double inverse = symbol != 0 ? 1 / (symbol * points) : 0;
      row[2 * k] *= inverse;
      row[2 * k + 1] *= inverse;
    }
  }
}

void Elliptic::solve(double shift, double factor) {
  const npb::Lines rows{grid_.rows, grid_.n, 1};
  along_x_.transform(Direction::forward, pairs_.get(), rows);
  const Columns columns = to_columns();
  const npb::Lines lines{columns.count, 1, columns.count};
  along_y_.transform(Direction::forward, columns.values, lines);
  divide(columns, shift, factor);
  along_y_.transform(Direction::backward, columns.values, lines);
  from_columns();
  along_x_.transform(Direction::backward, pairs_.get(), rows);
}

}  // namespace eddy
