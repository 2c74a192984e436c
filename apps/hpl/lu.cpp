// SPDX-License-Identifier: BSD-3-Clause
#include "hpl/lu.hpp"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "npb/region.hpp"

namespace hpl {
namespace {

constexpr Index narrow = 8;           // a panel that is factorised column by column
constexpr Index small_triangle = 16;  // solved row by row

void exchange_rows(View columns, const Index* pivot, Index count) {
  for (Index j = 0; j < columns.columns; ++j) {
    double* column = columns.at(0, j);
    for (Index i = 0; i < count; ++i) std::swap(column[i], column[pivot[i]]);
  }
}

// B = L^-1 B for the unit lower triangle of `lower`.
void solve_lower(View lower, View b, Product& product) {
  const Index n = lower.columns;
  if (n > small_triangle) {
    const Index half = n / 2;
    const View top = b.part(0, 0, half, b.columns);
    const View bottom = b.part(half, 0, n - half, b.columns);
    solve_lower(lower.part(0, 0, half, half), top, product);
    product.subtract(lower.part(half, 0, n - half, half), top, bottom);
    solve_lower(lower.part(half, half, n - half, n - half), bottom, product);
    return;
  }
  for (Index j = 0; j < b.columns; ++j) {
    double* x = b.at(0, j);
    for (Index k = 0; k < n; ++k) {
      for (Index i = k + 1; i < n; ++i) x[i] -= *lower.at(i, k) * x[k];
    }
  }
}

// pivot[k]: the row, counted within the panel, that row k was exchanged with.
void factorise_narrow(View panel, Index* pivot) {
  for (Index k = 0; k < panel.columns; ++k) {
    double* column = panel.at(0, k);
    pivot[k] = k;
    for (Index i = k + 1; i < panel.rows; ++i) {
      if (std::abs(column[i]) > std::abs(column[pivot[k]])) pivot[k] = i;
    }
    for (Index j = 0; j < panel.columns; ++j) std::swap(*panel.at(k, j), *panel.at(pivot[k], j));
    const double inverse = 1 / column[k];
    for (Index i = k + 1; i < panel.rows; ++i) column[i] *= inverse;
    for (Index j = k + 1; j < panel.columns; ++j) {
      double* right = panel.at(0, j);
      for (Index i = k + 1; i < panel.rows; ++i) right[i] -= column[i] * right[k];
    }
  }
}

// Halves of a panel, so that its work too is mostly products (Toledo, 1997).
void factorise_panel(View panel, Index* pivot, Product& product) {
  if (panel.columns <= narrow) return factorise_narrow(panel, pivot);
  const Index half = panel.columns / 2;
  const Index rest = panel.columns - half;
  const View left = panel.part(0, 0, panel.rows, half);
  const View right = panel.part(0, half, panel.rows, rest);
  factorise_panel(left, pivot, product);
  exchange_rows(right, pivot, half);
  solve_lower(left, right.part(0, 0, half, rest), product);
  const View below = right.part(half, 0, panel.rows - half, rest);
  product.subtract(left.part(half, 0, panel.rows - half, half), right.part(0, 0, half, rest),
                   below);
  factorise_panel(below, pivot + half, product);
  exchange_rows(left.part(half, 0, panel.rows - half, half), pivot + half, rest);
  for (Index i = half; i < panel.columns; ++i) pivot[i] += half;
}

}  // namespace

void factorise(View system, Index block, Product& product) {
  const Index n = system.rows;
  std::vector<Index> pivot(static_cast<std::size_t>(block));
  for (Index k = 0; k < n; k += block) {
    npb::mark_iteration(static_cast<std::uint64_t>(k / block + 1));
    const Index width = std::min(block, n - k);
    const Index right = system.columns - k - width;
    const View panel = system.part(k, k, n - k, width);
    factorise_panel(panel, pivot.data(), product);
    const View beside = system.part(k, k + width, n - k, right);
    exchange_rows(beside, pivot.data(), width);
    const View upper = beside.part(0, 0, width, right);
    solve_lower(panel.part(0, 0, width, width), upper, product);
    product.subtract(panel.part(width, 0, n - k - width, width), upper,
                     beside.part(width, 0, n - k - width, right));
  }
}

void solve_upper(View system, double* x) {
  const Index n = system.rows;
  std::copy(system.at(0, n), system.at(0, n) + n, x);
  for (Index j = n - 1; j >= 0; --j) {
    const double* column = system.at(0, j);
    x[j] /= column[j];
    for (Index i = 0; i < j; ++i) x[i] -= column[i] * x[j];
  }
}

}  // namespace hpl
