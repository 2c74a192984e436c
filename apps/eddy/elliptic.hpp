// SPDX-License-Identifier: BSD-3-Clause
//
// Elliptic: solves (shift - factor L) f = g on the periodic grid, where L is the Laplacian of five
// points, by Fourier transforms along x and then along y. Not limited in accuracy but by rounding.
//
// All numbers of the operator are real: the real and the imaginary part of g are two right sides,
// and those of f their solutions. A field of pairs has no ghosts: [row][x][2].
#pragma once

#include <vector>

#include "eddy/grid.hpp"
#include "npb/fft.hpp"

namespace eddy {

class Elliptic {
 public:
  explicit Elliptic(const Grid& grid);

  // The field of pairs: the right sides, then the solutions.
  double* pairs() { return pairs_.get(); }

  // Collective. With shift 0 the solution is that of mean 0, and the mean of g is left out.
  void solve(double shift, double factor);

 private:
  struct Columns {
    double* values;  // [y][x][2], this rank's x
    Index count;     // of x
  };
  Columns to_columns();
  void from_columns();
  void divide(const Columns& columns, double shift, double factor) const;
  template <typename Copy>
  void for_parts(Copy copy) const;

  Grid grid_;
  Index first_column_;
  npb::Fft along_x_, along_y_;
  Array<double> pairs_;
  Array<double> eigenvalues_;                      // of -L along one direction
  Array<double> columns_, messages_;               // if there are several ranks
  std::vector<Index> row_counts_, column_counts_;  // of doubles, by rank
};

}  // namespace eddy
