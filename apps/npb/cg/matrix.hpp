// SPDX-License-Identifier: BSD-3-Clause
//
// The sparse matrix of CG (RNR-94-007, section 2.2.4.3): a weighted sum of outer products of
// random sparse vectors, plus (condition - shift) on the diagonal. Stored by rows.
//
// The arrays keep the sizes of NPB, since they decide the program's footprint:
//   npb3.2  the generator writes every element of every outer product as a triple (row, column,
//           value), which three arrays as long as the matrix's hold. They stay allocated; after
//           setup nobody touches them. NPB had this up to 3.2.
//   npb3.3  it keeps the random vectors only.
// The matrix is the same, except for the rounding of sums.
#pragma once

#include <cstdint>

#include "npb/array.hpp"
#include "npb/cg/classes.hpp"

namespace npb::cg {

enum class Scratch { npb32, npb33 };

struct Matrix {
  Index n = 0;          // columns, and rows of all ranks
  Index first_row = 0;  // of this rank
  Index rows = 0;       // of this rank
  Array<std::int32_t> row_start;
  Array<std::int32_t> column;
  Array<double> value;

  // The generator's memory. NPB has it in static arrays, so it lives as long as the matrix.
  Array<std::int32_t> triple_row, triple_column;
  Array<double> triple_value;
};

// Collective: each rank makes its rows, all from the same random numbers.
Matrix make_matrix(const ProblemClass& problem, Scratch scratch);

// product = matrix * x; x has n elements, product one for each row of this rank.
void multiply(const Matrix& matrix, const double* x, double* product);

}  // namespace npb::cg
