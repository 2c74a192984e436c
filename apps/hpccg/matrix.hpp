// SPDX-License-Identifier: BSD-3-Clause
//
// Matrix: the 27-point finite-difference operator, stored explicitly as an unstructured code would.
//
// Diagonal 27, off-diagonals -1, as in HPCCG (Heroux et al., SAND2009-5574). Every row has 27
// entries, row after row (ELLPACK by rows); where the domain ends an entry is 0 and its column the
// row itself, so that the inner loop has a fixed length. 12 bytes an entry, 324 a row.
#pragma once

#include <cstddef>
#include <cstdint>

#include "buffer.hpp"
#include "grid.hpp"

namespace hpccg {

constexpr std::size_t row_entries = 27;

struct Matrix {
  std::size_t rows = 0;
  Buffer<double> values;
  Buffer<std::uint32_t> columns;
};

Matrix make_matrix(const Grid& grid);

// b[i] = sum of row i, so that the solution is all ones.
void sum_rows(const Matrix& matrix, double* b);

// y = A v; v has the halo. Returns the dot product of v and y over this rank's points.
double multiply(const Matrix& matrix, const double* v, double* y);

}  // namespace hpccg
