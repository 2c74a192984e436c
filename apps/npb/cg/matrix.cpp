// SPDX-License-Identifier: BSD-3-Clause
#include "npb/cg/matrix.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "npb/parallel.hpp"
#include "npb/randdp.hpp"
#include "npb/ranks.hpp"

namespace npb::cg {
namespace {

// A sparse vector: the places are different, in no order.
struct SparseVector {
  std::vector<std::int32_t> place;
  std::vector<double> value;

  void set(std::int32_t at, double to) {
    const auto found = std::find(place.begin(), place.end(), at);
    if (found != place.end()) {
      value[static_cast<std::size_t>(found - place.begin())] = to;
    } else {
      place.push_back(at);
      value.push_back(to);
    }
  }
};

// Draws the random vectors one after the other. A place is drawn below the power of two that is
// not less than n, and drawn again, with its value, where it is not below n or is taken.
class VectorSource {
 public:
  VectorSource(Index n, int nonzeros) : n_(n), nonzeros_(static_cast<std::size_t>(nonzeros)) {
    while (range_ < n_) range_ *= 2;
    random_.next();  // the benchmark draws one number before those of the matrix
  }

  // Vector i, whose element i is 1/2; to be called for i = 0, 1, … n - 1.
  const SparseVector& next(Index i) {
    vector_.place.clear();
    vector_.value.clear();
    while (vector_.place.size() < nonzeros_) {
      const double value = random_.next();
      const auto place = static_cast<std::int32_t>(random_.next() * static_cast<double>(range_));
      const bool taken =
          std::find(vector_.place.begin(), vector_.place.end(), place) != vector_.place.end();
      if (place < n_ && !taken) vector_.set(place, value);
    }
    vector_.set(static_cast<std::int32_t>(i), 0.5);
    return vector_;
  }

 private:
  Index n_;
  std::size_t nonzeros_;
  Index range_ = 1;
  Random random_;
  SparseVector vector_;
};

// Calls use(row, column, value) for the elements in the rows of this rank of the outer product of
// a vector with itself, times the weight.
template <typename Use>
void outer_product(const Matrix& matrix, const std::int32_t* place, const double* value,
                   Index count, double weight, Use use) {
  const Index end = matrix.first_row + matrix.rows;
  for (Index i = 0; i < count; ++i) {
    const double scale = weight * value[i];
    for (Index j = 0; j < count; ++j) {
      if (place[j] >= matrix.first_row && place[j] < end) use(place[j], place[i], value[j] * scale);
    }
  }
}

template <typename Use>
void diagonal(const Matrix& matrix, double value, Use use) {
  for (Index i = 0; i < matrix.rows; ++i) {
    const auto row = static_cast<std::int32_t>(matrix.first_row + i);
    use(row, row, value);
  }
}

// Calls use for all elements, of which several may have the same row and column.
template <typename Use>
void all_elements(const Matrix& matrix, const ProblemClass& problem, Use use) {
  VectorSource source(problem.n, problem.nonzeros);
  const double ratio = std::pow(condition, 1.0 / static_cast<double>(problem.n));
  double weight = 1;
  for (Index i = 0; i < problem.n; ++i, weight *= ratio) {
    const SparseVector& vector = source.next(i);
    outer_product(matrix, vector.place.data(), vector.value.data(),
                  static_cast<Index>(vector.place.size()), weight, use);
  }
  diagonal(matrix, condition - problem.shift, use);
}

// Allocates for all elements, and sets row_start[i] to the first of row i. Returns for how many.
Index allocate(Matrix& matrix, const ProblemClass& problem) {
  matrix.row_start = Array<std::int32_t>(matrix.rows + 1);
  std::int32_t* start = matrix.row_start.get();
  std::fill(start, start + matrix.rows + 1, 0);
  all_elements(matrix, problem, [&](std::int32_t row, std::int32_t, double) {
    ++start[row - matrix.first_row + 1];
  });
  for (Index i = 0; i < matrix.rows; ++i) start[i + 1] += start[i];
  // NPB's bound for a process that has all rows; several ranks know what they need.
  const Index bound = problem.n * (problem.nonzeros + 1) * (problem.nonzeros + 1) +
                      problem.n * (problem.nonzeros + 2);
  const Index size = ranks::count() == 1 ? bound : start[matrix.rows];
  matrix.column = Array<std::int32_t>(size);
  matrix.value = Array<double>(size);
  return size;
}

// Puts elements where their row begins, which moves row_start[i] to the end of row i.
void place_element(Matrix& matrix, std::int32_t row, std::int32_t column, double value) {
  const std::int32_t at = matrix.row_start.get()[row - matrix.first_row]++;
  matrix.column.get()[at] = column;
  matrix.value.get()[at] = value;
}

void fill_from_triples(Matrix& matrix, const ProblemClass& problem, Index size) {
  matrix.triple_row = Array<std::int32_t>(size);
  matrix.triple_column = Array<std::int32_t>(size);
  matrix.triple_value = Array<double>(size);
  Index triples = 0;
  all_elements(matrix, problem, [&](std::int32_t row, std::int32_t column, double value) {
    matrix.triple_row.get()[triples] = row;
    matrix.triple_column.get()[triples] = column;
    matrix.triple_value.get()[triples] = value;
    ++triples;
  });
  for (Index i = 0; i < triples; ++i) {
    place_element(matrix, matrix.triple_row.get()[i], matrix.triple_column.get()[i],
                  matrix.triple_value.get()[i]);
  }
}

void fill_from_vectors(Matrix& matrix, const ProblemClass& problem) {
  const Index longest = problem.nonzeros + 1;
  matrix.triple_row = Array<std::int32_t>(problem.n);  // the lengths of the vectors
  matrix.triple_column = Array<std::int32_t>(problem.n * longest);
  matrix.triple_value = Array<double>(problem.n * longest);
  VectorSource source(problem.n, problem.nonzeros);
  for (Index i = 0; i < problem.n; ++i) {
    const SparseVector& vector = source.next(i);
    matrix.triple_row.get()[i] = static_cast<std::int32_t>(vector.place.size());
    std::copy(vector.place.begin(), vector.place.end(), matrix.triple_column.get() + i * longest);
    std::copy(vector.value.begin(), vector.value.end(), matrix.triple_value.get() + i * longest);
  }
  const auto place = [&](std::int32_t row, std::int32_t column, double value) {
    place_element(matrix, row, column, value);
  };
  const double ratio = std::pow(condition, 1.0 / static_cast<double>(problem.n));
  double weight = 1;
  for (Index i = 0; i < problem.n; ++i, weight *= ratio) {
    outer_product(matrix, matrix.triple_column.get() + i * longest,
                  matrix.triple_value.get() + i * longest, matrix.triple_row.get()[i], weight,
                  place);
  }
  diagonal(matrix, condition - problem.shift, place);
}

// Adds up the elements of a row that have the same column. row_start[i] is the end of row i before,
// and its beginning afterwards. Rows move towards the front, so that none is overwritten unread.
void merge_duplicates(Matrix& matrix) {
  Array<double> sum(matrix.n);
  Array<unsigned char> seen(matrix.n);
  std::fill(sum.get(), sum.get() + matrix.n, 0.0);
  std::fill(seen.get(), seen.get() + matrix.n, static_cast<unsigned char>(0));
  std::vector<std::int32_t> columns;
  std::int32_t from = 0;
  std::int32_t to = 0;
  for (Index i = 0; i < matrix.rows; ++i) {
    const std::int32_t end = matrix.row_start.get()[i];
    columns.clear();
    for (; from < end; ++from) {
      const std::int32_t column = matrix.column.get()[from];
      if (seen.get()[column] == 0) columns.push_back(column);
      seen.get()[column] = 1;
      sum.get()[column] += matrix.value.get()[from];
    }
    matrix.row_start.get()[i] = to;
    for (const std::int32_t column : columns) {
      matrix.column.get()[to] = column;
      matrix.value.get()[to++] = sum.get()[column];
      sum.get()[column] = 0;
      seen.get()[column] = 0;
    }
  }
  matrix.row_start.get()[matrix.rows] = to;
}

}  // namespace

Matrix make_matrix(const ProblemClass& problem, Scratch scratch) {
  Matrix matrix;
  matrix.n = problem.n;
  matrix.first_row = ranks::block_begin(problem.n, ranks::rank());
  matrix.rows = ranks::block_begin(problem.n, ranks::rank() + 1) - matrix.first_row;
  const Index size = allocate(matrix, problem);
  if (scratch == Scratch::npb32) {
    fill_from_triples(matrix, problem, size);
  } else {
    fill_from_vectors(matrix, problem);
  }
  merge_duplicates(matrix);
  return matrix;
}

void multiply(const Matrix& matrix, const double* x, double* product) {
  const std::int32_t* start = matrix.row_start.get();
  const std::int32_t* column = matrix.column.get();
  const double* value = matrix.value.get();
  NPB_PARALLEL()
  for (Index i = 0; i < matrix.rows; ++i) {
    double sum = 0;
    for (Index k = start[i]; k < start[i + 1]; ++k) sum += value[k] * x[column[k]];
    product[i] = sum;
  }
}

}  // namespace npb::cg
