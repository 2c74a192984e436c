// SPDX-License-Identifier: BSD-3-Clause
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "hpl/lu.hpp"
#include "hpl/problem.hpp"
#include "hpl/product.hpp"

namespace hpl {
namespace {

struct Matrix {
  Matrix(Index rows, Index columns, Index stride)
      : numbers(static_cast<std::size_t>(stride * columns)),
        view{numbers.data(), rows, columns, stride} {}
  std::vector<double> numbers;
  View view;
};

Matrix random_matrix(Index rows, Index columns, std::mt19937_64& random) {
  Matrix matrix(rows, columns, rows + 3);
  std::uniform_real_distribution<double> draw(-1, 1);
  for (double& number : matrix.numbers) number = draw(random);
  return matrix;
}

void expect_right_product(const Kernel& kernel, Index rows, Index depth, Index columns,
                          std::mt19937_64& random) {
  SCOPED_TRACE(std::string(kernel.name) + ": " + std::to_string(rows) + " x " +
               std::to_string(depth) + " x " + std::to_string(columns));
  const Matrix a = random_matrix(rows, depth, random);
  const Matrix b = random_matrix(depth, columns, random);
  Matrix c = random_matrix(rows, columns, random);
  std::vector<double> expected = c.numbers;  // what lies between the columns must not change
  for (Index i = 0; i < rows; ++i) {
    for (Index j = 0; j < columns; ++j) {
      double& element = expected[static_cast<std::size_t>(i + j * c.view.stride)];
      for (Index k = 0; k < depth; ++k) element -= *a.view.at(i, k) * *b.view.at(k, j);
    }
  }
  Product(kernel).subtract(a.view, b.view, c.view);
  for (std::size_t at = 0; at < expected.size(); ++at) {
    ASSERT_NEAR(c.numbers[at], expected[at], 1e-14 * static_cast<double>(depth + 10)) << at;
  }
}

TEST(Product, it_is_that_of_three_nested_loops_for_sizes_around_tiles_and_blocks) {
  std::mt19937_64 random(1);
  for (const Kernel* kernel : {&portable_kernel(), &best_kernel()}) {
    for (const Index size : {1, 3, 4, 5, 6, 8, 13}) {
      expect_right_product(*kernel, size, 7, 2 * size + 1, random);
      expect_right_product(*kernel, 2 * size, size, size, random);
    }
    expect_right_product(*kernel, 193, 257, 11, random);
    expect_right_product(*kernel, 9, 5, 769, random);
    expect_right_product(*kernel, 5, 0, 5, random);
  }
}

std::vector<double> solution(Index n, Index block, std::uint64_t seed) {
  Matrix system(n, n + 1, n);
  std::vector<double> x(static_cast<std::size_t>(n));
  draw_system(system.view, seed);
  Product product(best_kernel());
  factorise(system.view, block, product);
  solve_upper(system.view, x.data());
  return x;
}

TEST(Lu, the_residual_passes_for_sizes_around_the_block) {
  for (const Index n : {1, 2, 7, 8, 9, 31, 32, 33, 100, 257}) {
    for (const Index block : {1, 3, 8, 32, 500}) {
      const std::vector<double> x = solution(n, block, 7);
      EXPECT_TRUE(passes(scaled_residual(n, 7, x.data()))) << n << " in blocks of " << block;
    }
  }
}

TEST(Lu, rows_are_exchanged_where_the_diagonal_is_zero) {
  // 0 1 2 | 8    0 2 1 | 7    4 0 0 | 4, stored by columns: x = (1, 2, 3)
  std::vector<double> numbers{0, 0, 4, 1, 2, 0, 2, 1, 0, 8, 7, 4};
  double x[3];
  Product product(best_kernel());
  const View system{numbers.data(), 3, 4, 3};
  factorise(system, 2, product);
  solve_upper(system, x);
  EXPECT_DOUBLE_EQ(x[0], 1);
  EXPECT_DOUBLE_EQ(x[1], 2);
  EXPECT_DOUBLE_EQ(x[2], 3);
}

TEST(Residual, a_planted_error_in_one_element_of_the_solution_fails) {
  constexpr Index n = 200;
  std::vector<double> x = solution(n, 32, 3);
  ASSERT_TRUE(passes(scaled_residual(n, 3, x.data())));
  x[n / 2] *= 1 + 1e-9;
  EXPECT_FALSE(passes(scaled_residual(n, 3, x.data())));
}

TEST(Residual, the_solution_of_another_system_and_no_number_fail) {
  constexpr Index n = 50;
  std::vector<double> x = solution(n, 32, 3);
  EXPECT_FALSE(passes(scaled_residual(n, 4, x.data())));
  x[0] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(passes(scaled_residual(n, 3, x.data())));
}

}  // namespace
}  // namespace hpl
