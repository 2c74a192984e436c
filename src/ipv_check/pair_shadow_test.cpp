// SPDX-License-Identifier: BSD-3-Clause
//
// A pair under the checker: what tests/ipv_check/pair.c does not show.
#include "ipv_check/pair_shadow.hpp"

#include <gtest/gtest.h>

#include <cstring>

#include "ipv_check/checker.hpp"

namespace perdure::ipv_check {
namespace {

constexpr std::size_t bytes = 43;  // not a multiple of a word

class PairShadowTest : public testing::Test {
 protected:
  PairShadowTest() : checker_([](const std::string&) {}) {
    EXPECT_TRUE(checker_.open(1).ok());
    EXPECT_TRUE(checker_.add_pair("f", a_, b_, bytes).ok());
    EXPECT_TRUE(checker_.restart().ok());
  }

  static std::uintptr_t at(const std::uint8_t* array, std::size_t i) {
    return reinterpret_cast<std::uintptr_t>(array + i);
  }
  std::uint8_t load(const std::uint8_t* array, std::size_t i) {
    checker_.load(at(array, i), 1, site_);
    return array[i];
  }
  void store(std::uint8_t* array, std::size_t i, std::uint8_t value) {
    checker_.store(at(array, i), 1, site_);
    array[i] = value;
  }
  void overwrite(std::uint8_t* array) {
    for (std::size_t i = 0; i < bytes; ++i) store(array, i, 7);
  }
  void persist() { EXPECT_TRUE(checker_.persist(0, nullptr).ok()); }
  std::vector<Rule> rules() const {
    std::vector<Rule> found;
    for (const Violation& violation : checker_.violations()) found.push_back(violation.breach.rule);
    return found;
  }

  alignas(8) std::uint8_t a_[bytes] = {};
  alignas(8) std::uint8_t b_[bytes] = {};
  alignas(8) std::uint8_t c_[bytes] = {};
  Site site_{"loop.c", "iterate", 7, 3, 0, 0, nullptr, -1, {}};
  Checker checker_;
};

TEST_F(PairShadowTest, what_code_that_is_not_seen_stores_is_overwritten) {
  overwrite(b_);
  persist();
  std::memset(a_, 3, bytes);  // as a receive does
  EXPECT_EQ(load(a_, 5), 3);
  persist();
  EXPECT_EQ(rules(), std::vector<Rule>{});
  overwrite(b_);
  a_[40] = 9;
  persist();
  EXPECT_EQ(a_[40], 0xff) << "an iteration must overwrite it, and has not yet";
  checker_.touch(at(a_, 0), bytes, 0);
  std::memset(a_, 4, bytes);
  EXPECT_EQ(load(a_, 40), 4);
  EXPECT_EQ(rules(), std::vector<Rule>{});
}

TEST_F(PairShadowTest,
       what_is_announced_before_a_receive_must_be_in_the_array_that_is_overwritten) {
  overwrite(b_);
  persist();
  checker_.touch(at(b_, 3), 2, 0);
  EXPECT_EQ(rules(), std::vector{Rule::store_to_committed});
  EXPECT_EQ(checker_.violations()[0].breach.other, true);
}

TEST_F(PairShadowTest, a_pair_of_another_size_begins_anew) {
  overwrite(b_);
  persist();
  EXPECT_EQ(checker_.resize("f", b_, bytes).code(), Code::invalid_argument);
  std::memcpy(c_, b_, bytes);
  c_[11] = 1;
  EXPECT_TRUE(checker_.resize("f", b_, 24, c_).ok());
  EXPECT_EQ(checker_.alive("f").value(), b_);
  load(c_, 10);
  EXPECT_EQ(rules(), std::vector<Rule>{});
  load(c_, 11);
  EXPECT_EQ(rules(), std::vector{Rule::unequal_walls});
  store(a_, 30, 1);
  persist();
  EXPECT_EQ(rules(), std::vector{Rule::unequal_walls}) << "the old place is the program's";
}

TEST_F(PairShadowTest, a_pair_takes_no_box_and_no_pin) {
  EXPECT_FALSE(checker_.row_begin(RowBox::of_row(at(b_, 0), 8), 0).has_value());
  EXPECT_EQ(checker_.pin(b_, true).code(), Code::wrong_state);
  EXPECT_EQ(checker_.alive("g").status().code(), Code::not_found);
  EXPECT_EQ(checker_.add_pair("g", c_, c_ + 8, 24).code(), Code::invalid_argument);
}

}  // namespace
}  // namespace perdure::ipv_check
