// SPDX-License-Identifier: BSD-3-Clause
#include "vectors.hpp"

#include <algorithm>

namespace hpccg {

void add_scaled(std::size_t count, const double* in, double factor, const double* direction,
                double* out) {
  // An element depends on elements of the same index only, so equal pointers do no harm.
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i] + factor * direction[i];
}

double dot_block(std::size_t count, const double* a, const double* b) {
  constexpr std::size_t lanes = 8;
  double sums[lanes] = {};
  std::size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    for (std::size_t lane = 0; lane < lanes; ++lane) sums[lane] += a[i + lane] * b[i + lane];
  }
  for (; i < count; ++i) sums[0] += a[i] * b[i];
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
}

double dot(std::size_t count, const double* a, const double* b) {
  double sum = 0;
  for (std::size_t first = 0; first < count; first += block_points) {
    sum += dot_block(std::min(block_points, count - first), a + first, b + first);
  }
  return sum;
}

}  // namespace hpccg
