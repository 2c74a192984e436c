// SPDX-License-Identifier: BSD-3-Clause
#include "npb/fft.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <numbers>
#include <vector>

#include "npb/randdp.hpp"

namespace npb {
namespace {

using Complex = std::complex<double>;

std::vector<double> random_numbers(Index count) {
  std::vector<double> numbers;
  Random random;
  for (Index i = 0; i < count; ++i) numbers.push_back(random.next() - 0.5);
  return numbers;
}

Complex at(const std::vector<double>& numbers, Index i) {
  return {numbers[static_cast<std::size_t>(2 * i)], numbers[static_cast<std::size_t>(2 * i + 1)]};
}

// Element k of the transform of a line, by the definition.
Complex sum_of(const std::vector<double>& numbers, Index first, Index stride, Index n, Index k,
               int sign) {
  Complex sum;
  for (Index j = 0; j < n; ++j) {
    const double angle =
        2 * std::numbers::pi * static_cast<double>(j * k % n * sign) / static_cast<double>(n);
    sum += at(numbers, first + j * stride) * std::polar(1.0, angle);
  }
  return sum;
}

void expect_transforms(Index n, const Lines& lines, Index size, Direction direction) {
  const std::vector<double> before = random_numbers(2 * size);
  std::vector<double> after = before;
  Fft(n).transform(direction, after.data(), lines);
  const int sign = direction == Direction::forward ? -1 : 1;
  for (Index l = 0; l < lines.count; ++l) {
    for (Index k = 0; k < n; ++k) {
      const Complex expected = sum_of(before, l * lines.apart, lines.stride, n, k, sign);
      ASSERT_LT(std::abs(at(after, l * lines.apart + k * lines.stride) - expected),
                1e-13 * static_cast<double>(n))
          << "n " << n << ", line " << l << ", element " << k;
    }
  }
}

TEST(Fft, lines_of_all_lengths_are_transformed_as_the_definition_says) {
  for (const Index n : {1, 2, 4, 8, 16, 32, 64, 128}) {
    for (const Direction direction : {Direction::forward, Direction::backward}) {
      expect_transforms(n, {1, n, 1}, n, direction);
      expect_transforms(n, {19, n, 1}, 19 * n, direction);  // a whole batch and a part of one
      expect_transforms(n, {19, 1, 19}, 19 * n, direction);
    }
  }
}

TEST(Fft, numbers_between_the_lines_stay) {
  std::vector<double> numbers = random_numbers(2 * 3 * 8 * 2);
  const std::vector<double> before = numbers;
  Fft(8).transform(Direction::forward, numbers.data(), {3, 16, 2});
  for (Index i = 1; i < 3 * 16; i += 2) ASSERT_EQ(at(numbers, i), at(before, i)) << i;
}

}  // namespace
}  // namespace npb
