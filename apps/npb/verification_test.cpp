// SPDX-License-Identifier: BSD-3-Clause
#include "npb/verification.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "npb/randdp.hpp"

namespace npb {
namespace {

const Check exact{"zeta", 8.5971775078648, 8.5971775078648, 1e-10};

Check off_by(double relative) {
  Check check = exact;
  check.value *= 1 + relative;
  return check;
}

TEST(Verification, a_number_agrees_within_the_tolerance_on_both_sides) {
  EXPECT_TRUE(agrees(exact));
  EXPECT_TRUE(agrees(off_by(0.9e-10)));
  EXPECT_TRUE(agrees(off_by(-0.9e-10)));
  EXPECT_FALSE(agrees(off_by(1.1e-10)));
  EXPECT_FALSE(agrees(off_by(-1.1e-10)));
}

TEST(Verification, a_difference_is_relative_to_a_published_number_of_any_size_and_sign) {
  EXPECT_TRUE(agrees({"small", 2e-30 * (1 + 1e-9), 2e-30, 1e-8}));
  EXPECT_FALSE(agrees({"small", 0, 2e-30, 1e-8}));
  EXPECT_TRUE(agrees({"negative", -5 * (1 + 1e-9), -5, 1e-8}));
  EXPECT_FALSE(agrees({"negative", 5, -5, 1e-8}));
}

TEST(Verification, what_is_not_a_number_never_agrees) {
  Check check = exact;
  check.value = std::numeric_limits<double>::quiet_NaN();
  EXPECT_FALSE(agrees(check));
  check.value = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(agrees(check));
}

TEST(Verification, one_wrong_number_among_right_ones_fails_and_exits_with_1) {
  EXPECT_EQ(verdict({exact, exact}, 15, 15), Verdict::verified);
  EXPECT_EQ(verdict({exact, off_by(1e-8), exact}, 15, 15), Verdict::failed);
  EXPECT_EQ(verdict({}, 15, 15), Verdict::failed);
  EXPECT_EQ(exit_code(Verdict::failed), 1);
  EXPECT_EQ(exit_code(Verdict::verified), 0);
}

TEST(Verification, another_number_of_iterations_is_neither_verified_nor_failed) {
  EXPECT_EQ(verdict({off_by(1)}, 5, 15), Verdict::not_applicable);
  EXPECT_EQ(verdict({exact}, 16, 15), Verdict::not_applicable);
  EXPECT_EQ(exit_code(Verdict::not_applicable), 0);
}

// The same sequence with arithmetic of 128 bits.
TEST(Random, the_sequence_is_that_of_exact_arithmetic) {
  Random random;
  unsigned __int128 state = Random::default_seed;
  for (int i = 0; i < 1000; ++i) {
    state = state * Random::default_multiplier % (std::uint64_t{1} << 46);
    const double expected = static_cast<double>(static_cast<std::uint64_t>(state)) / 0x1p46;
    ASSERT_EQ(random.next(), expected) << "number " << i;
  }
}

TEST(Random, skipped_numbers_are_those_that_would_have_been_drawn) {
  Random drawn, skipped;
  for (const std::uint64_t count : {0U, 1U, 2U, 5U, 64U, 1023U}) {
    for (std::uint64_t i = 0; i < count; ++i) drawn.next();
    skipped.skip(count);
    ASSERT_EQ(skipped.next(), drawn.next()) << "after " << count;
  }
}

}  // namespace
}  // namespace npb
