// SPDX-License-Identifier: BSD-3-Clause
#include "hpl/problem.hpp"

#include <algorithm>
#include <cmath>

namespace hpl {
namespace {

// A linear congruential sequence modulo 2^64, with Knuth's multiplier (MMIX).
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    return static_cast<double>(state_ >> 11) * 0x1p-53 - 0.5;
  }

 private:
  std::uint64_t state_;
};

double norm(const double* numbers, Index count) {
  double largest = 0;
  for (Index i = 0; i < count; ++i) {
    if (!(std::abs(numbers[i]) <= largest)) largest = std::abs(numbers[i]);  // NaN stays
  }
  return largest;
}

}  // namespace

void draw_system(View system, std::uint64_t seed) {
  Random random(seed);
  for (Index j = 0; j < system.columns; ++j) {
    for (Index i = 0; i < system.rows; ++i) *system.at(i, j) = random.next();
  }
}

double scaled_residual(Index n, std::uint64_t seed, const double* x) {
  Array<double> difference(n), row_sum(n);  // A x - b, and the sums of |A| that give its norm
  double* r = difference.get();
  double* sum = row_sum.get();
  std::fill(r, r + n, 0.0);
  std::fill(sum, sum + n, 0.0);
  Random random(seed);
  for (Index j = 0; j < n; ++j) {
    for (Index i = 0; i < n; ++i) {
      const double element = random.next();
      sum[i] += std::abs(element);
      r[i] += element * x[j];
    }
  }
  double right_side = 0;
  for (Index i = 0; i < n; ++i) {
    const double b = random.next();
    right_side = std::max(right_side, std::abs(b));
    r[i] -= b;
  }
  const double scale = norm(sum, n) * norm(x, n) + right_side;
  return norm(r, n) / (0x1p-53 * scale * static_cast<double>(n));
}

bool passes(double residual) {
  return residual < residual_max;
}

}  // namespace hpl
