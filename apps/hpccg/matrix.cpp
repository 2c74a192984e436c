// SPDX-License-Identifier: BSD-3-Clause
#include "matrix.hpp"

#include <stdexcept>

namespace hpccg {
namespace {

struct Point {
  std::uint32_t x, y, z;
};

// The column of the neighbour (x + dx, y + dy, z + dz), or -1 outside the domain. Coordinates wrap
// below 0, so that one comparison checks both ends.
std::int64_t column_of(const Grid& grid, Point point, int dx, int dy, int dz) {
  const std::uint32_t x = point.x + static_cast<std::uint32_t>(dx);
  const std::uint32_t y = point.y + static_cast<std::uint32_t>(dy);
  const std::uint32_t z = point.z + static_cast<std::uint32_t>(dz);
  if (x >= grid.nx || y >= grid.ny) return -1;
  const std::size_t in_plane = std::size_t{y} * grid.nx + x;
  if (z < grid.nz) return static_cast<std::int64_t>(z * grid.plane() + in_plane);
  if (dz < 0 && grid.has_below()) return static_cast<std::int64_t>(grid.points() + in_plane);
  if (dz > 0 && grid.has_above()) {
    return static_cast<std::int64_t>(grid.points() + grid.plane() + in_plane);
  }
  return -1;
}

void fill_row(const Grid& grid, Point point, std::size_t row, double* values,
              std::uint32_t* columns) {
  for (int dz = -1; dz <= 1; ++dz) {
    for (int dy = -1; dy <= 1; ++dy) {
      for (int dx = -1; dx <= 1; ++dx, ++values, ++columns) {
        const std::int64_t column = column_of(grid, point, dx, dy, dz);
        const bool diagonal = dx == 0 && dy == 0 && dz == 0;
        *values = column < 0 ? 0.0 : diagonal ? 27.0 : -1.0;
        *columns = static_cast<std::uint32_t>(column < 0 ? static_cast<std::int64_t>(row) : column);
      }
    }
  }
}

}  // namespace

Matrix make_matrix(const Grid& grid) {
  if (grid.points_with_halo() > UINT32_MAX) {
    throw std::runtime_error("the grid of a rank has more points than 32-bit columns can name");
  }
  Matrix matrix;
  matrix.rows = grid.points();
  matrix.values = Buffer<double>(matrix.rows * row_entries);
  matrix.columns = Buffer<std::uint32_t>(matrix.rows * row_entries);
  std::size_t row = 0;
  for (std::uint32_t z = 0; z < grid.nz; ++z) {
    for (std::uint32_t y = 0; y < grid.ny; ++y) {
      for (std::uint32_t x = 0; x < grid.nx; ++x, ++row) {
        fill_row(grid, {x, y, z}, row, matrix.values.get() + row * row_entries,
                 matrix.columns.get() + row * row_entries);
      }
    }
  }
  return matrix;
}

void sum_rows(const Matrix& matrix, double* b) {
  const double* values = matrix.values.get();
  for (std::size_t row = 0; row < matrix.rows; ++row, values += row_entries) {
    double sum = 0;
    for (std::size_t k = 0; k < row_entries; ++k) sum += values[k];
    b[row] = sum;
  }
}

double multiply(const Matrix& matrix, const double* __restrict v, double* __restrict y) {
  const double* __restrict values = matrix.values.get();
  const std::uint32_t* __restrict columns = matrix.columns.get();
  double dot = 0;
  for (std::size_t row = 0; row < matrix.rows; ++row) {
    double sums[3] = {0, 0, 0};  // three chains of additions: memory is the limit, not latency
    for (std::size_t k = 0; k < row_entries; k += 3) {
      sums[0] += values[k] * v[columns[k]];
      sums[1] += values[k + 1] * v[columns[k + 1]];
      sums[2] += values[k + 2] * v[columns[k + 2]];
    }
    y[row] = sums[0] + sums[1] + sums[2];
    dot += v[row] * y[row];
    values += row_entries;
    columns += row_entries;
  }
  return dot;
}

}  // namespace hpccg
