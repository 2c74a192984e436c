// SPDX-License-Identifier: BSD-3-Clause
//
// The checker against a model: programs that keep to the rules see what plain memory would hold,
// and nothing is reported; what a planted mistake changes is reported by its rule.
#include "ipv_check/checker.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>

namespace perdure::ipv_check {
namespace {

constexpr std::size_t bytes = 203;  // not a multiple of a word

// Accesses as instrumented code makes them: announced, then made.
class CheckerTest : public testing::Test {
 protected:
  CheckerTest() : checker_([this](const std::string& text) { sentences_.push_back(text); }) {
    for (std::size_t i = 0; i < bytes; ++i) {
      field_[i] = native_[i] = static_cast<std::uint8_t>(i);
    }
    EXPECT_TRUE(checker_.open(1).ok());
    EXPECT_TRUE(checker_.add("u", field_, bytes).ok());
    EXPECT_TRUE(checker_.restart().ok());
  }

  std::uint8_t load(std::size_t i, std::ptrdiff_t difference = 0) {
    const std::uint8_t* place = field_ + i + difference;
    checker_.load(reinterpret_cast<std::uintptr_t>(place), 1, site_);
    return *place;
  }
  void store(std::size_t i, std::uint8_t value, std::ptrdiff_t difference = 0) {
    std::uint8_t* place = field_ + i + difference;
    checker_.store(reinterpret_cast<std::uintptr_t>(place), 1, site_);
    *place = value;
  }
  std::uintptr_t address(std::size_t i) const {
    return reinterpret_cast<std::uintptr_t>(field_ + i);
  }
  RowBox row(std::size_t first, std::size_t count) const {
    return RowBox::of_row(address(first), count);
  }
  void persist() { EXPECT_TRUE(checker_.persist(0, nullptr).ok()); }
  void nest_end() { checker_.nest_end(address(0), 0); }

  // u = 3 u + 1 over a box, which breaks no rule.
  void update(const RowBox& box) {
    const std::ptrdiff_t difference = checker_.row_begin(box, 0).value();
    box.for_rows([&](std::size_t from, std::size_t to) {
      for (std::size_t at = from; at < to; ++at) {
        const std::size_t i = at - address(0);
        store(i, static_cast<std::uint8_t>(3 * load(i, is_stored_[i] ? 0 : difference) + 1));
        is_stored_[i] = true;
        native_[i] = static_cast<std::uint8_t>(3 * native_[i] + 1);
      }
    });
    checker_.row_end(box, 0);
    std::fill(std::begin(is_stored_), std::end(is_stored_), false);
  }

  std::vector<Rule> rules() const {
    std::vector<Rule> found;
    for (const Violation& violation : checker_.violations()) found.push_back(violation.breach.rule);
    return found;
  }

  alignas(8) std::uint8_t field_[bytes];
  std::uint8_t native_[bytes];
  bool is_stored_[bytes] = {};  // since the row began
  std::vector<std::string> sentences_;
  Site site_{"loop.c", "iterate", 7, 3, 0, 0, nullptr, -1, {}};
  Checker checker_;
};

TEST_F(CheckerTest, loads_of_a_fresh_row_go_to_the_old_copy) {
  EXPECT_NE(checker_.row_begin(row(16, 8), 0).value(), 0);
  for (std::size_t i = 16; i < 24; ++i) store(i, 1);
  checker_.row_end(row(16, 8), 0);
  EXPECT_EQ(checker_.row_begin(row(20, 8), 0).value(), 0) << "a part of it is stored to already";
  for (std::size_t i = 20; i < 28; ++i) store(i, load(i));
  checker_.row_end(row(20, 8), 0);
  nest_end();
  persist();
  EXPECT_EQ(rules(), std::vector<Rule>{});
  EXPECT_EQ(field_[15], 15);
  EXPECT_EQ(field_[27], 27);
  EXPECT_EQ(field_[28], 28);
}

TEST_F(CheckerTest, a_byte_that_is_not_stored_to_makes_its_row_and_the_version_wrong) {
  checker_.row_begin(row(0, 16), 0);
  for (std::size_t i = 0; i < 15; ++i) store(i, 1);
  checker_.row_end(row(0, 16), 0);
  nest_end();
  persist();
  EXPECT_EQ(rules(), (std::vector{Rule::row_not_stored, Rule::stale_commit}));
  EXPECT_EQ(checker_.violations()[0].breach.offset, 15U);
  EXPECT_EQ(checker_.violations()[0].breach.bytes, 1U);
}

TEST_F(CheckerTest, a_byte_reads_stale_where_only_its_neighbours_are_stored_to) {
  checker_.row_begin(row(0, 8), 0);
  store(1, 9);
  load(1);
  EXPECT_TRUE(rules().empty());
  load(2);
  EXPECT_EQ(rules(), std::vector{Rule::stale_read});
  EXPECT_NE(sentences_.at(0).find("loop.c:7:3"), std::string::npos) << sentences_.at(0);
  EXPECT_NE(sentences_.at(0).find("1 byte at 2"), std::string::npos) << sentences_.at(0);
}

TEST_F(CheckerTest, the_old_copy_is_wrong_where_the_new_one_was_stored_to) {
  const std::ptrdiff_t difference = checker_.row_begin(row(0, 8), 0).value();
  store(3, 9);
  EXPECT_EQ(load(2, difference), 2);
  EXPECT_TRUE(rules().empty());
  load(3, difference);
  EXPECT_EQ(rules(), std::vector{Rule::wrong_version_read});
}

TEST_F(CheckerTest, each_rule_of_rows_and_nests_is_watched) {
  const std::ptrdiff_t difference = checker_.row_begin(row(8, 8), 0).value();
  store(8, 1, difference);
  checker_.row_end(row(8, 9), 0);
  EXPECT_FALSE(checker_.row_begin(row(bytes - 4, 5), 0).has_value()) << "it sticks out";
  store(40, 1);
  load(40);
  nest_end();
  checker_.row_begin(row(8, 8), 0);
  persist();
  EXPECT_EQ(rules(), (std::vector{Rule::store_to_committed, Rule::row_not_begun,
                                  Rule::store_outside_row, Rule::read_outside_row,
                                  Rule::row_not_ended, Rule::nest_not_ended, Rule::stale_commit}));
  EXPECT_EQ(checker_.violation_count(), 8U) << "two rows are not ended";
}

TEST_F(CheckerTest, what_is_being_flushed_is_not_stored_to_until_the_persistence_point) {
  store(0, 1);
  checker_.flush_promised(address(0), 8);
  store(8, 1);
  EXPECT_TRUE(rules().empty());
  store(7, 1);
  EXPECT_EQ(rules(), std::vector{Rule::store_after_flush});
  persist();
  store(7, 2);
  EXPECT_EQ(checker_.violation_count(), 1U);
}

TEST_F(CheckerTest, a_violation_is_told_once_and_counted) {
  for (int i = 0; i < 5; ++i) {
    const std::ptrdiff_t difference = checker_.row_begin(row(0, 8), 0).value();
    for (std::size_t b = 0; b < 8; ++b) store(b, 1);
    load(0, difference);
    checker_.row_end(row(0, 8), 0);
    nest_end();
    persist();
  }
  EXPECT_EQ(sentences_.size(), 1U);
  EXPECT_EQ(checker_.violation_count(), 5U);
  EXPECT_EQ(checker_.violations()[0].last_iteration, 5U);
}

TEST_F(CheckerTest, an_object_that_got_another_place_is_watched_there_alone) {
  update(row(0, bytes));
  nest_end();
  persist();
  std::vector<std::uint8_t> larger(2 * bytes);
  std::copy(field_, field_ + bytes, larger.begin());
  EXPECT_EQ(checker_.resize("v", larger.data(), larger.size()).code(), Code::not_found);
  ASSERT_TRUE(checker_.resize("u", larger.data(), larger.size()).ok());
  EXPECT_FALSE(checker_.row_begin(row(16, 8), 0)) << "it is no object's any more";
  const RowBox all = RowBox::of_row(reinterpret_cast<std::uintptr_t>(larger.data()), larger.size());
  ASSERT_TRUE(checker_.row_begin(all, 0));
  checker_.store(reinterpret_cast<std::uintptr_t>(larger.data()), larger.size() - 1, site_);
  checker_.row_end(all, 0);
  checker_.nest_end(reinterpret_cast<std::uintptr_t>(larger.data()), 0);
  persist();
  ASSERT_FALSE(checker_.violations().empty());
  EXPECT_EQ(checker_.violations().front().breach.rule, Rule::row_not_stored);
  EXPECT_EQ(checker_.violations().front().breach.offset, larger.size() - 1);
}

TEST_F(CheckerTest, wrong_calls_are_refused_and_change_nothing) {
  EXPECT_EQ(checker_.open(1).code(), Code::busy);
  EXPECT_EQ(checker_.add("u", native_, bytes).code(), Code::invalid_argument);
  EXPECT_EQ(checker_.add("v", field_ + 5, 3).code(), Code::invalid_argument);
  EXPECT_EQ(checker_.add("v", nullptr, 3).code(), Code::invalid_argument);
  EXPECT_EQ(checker_.restart().code(), Code::wrong_state);
  EXPECT_EQ(checker_.pin(native_, true).code(), Code::not_found);
  EXPECT_EQ(checker_.pin(field_, false).code(), Code::wrong_state);
  EXPECT_TRUE(checker_.close(0).ok());
  EXPECT_EQ(checker_.persist(0, nullptr).code(), Code::wrong_state);
  EXPECT_EQ(checker_.close(0).code(), Code::wrong_state);
}

// Rows, boxes, plain stores and persistence points in any order.
class RandomHistory : public CheckerTest {
 protected:
  void run(std::uint64_t seed) {
    random_.seed(seed);
    for (int step = 0; step < 40 && !HasFailure(); ++step) one_step();
    nest_end();
    EXPECT_TRUE(checker_.close(0).ok());
    EXPECT_EQ(std::memcmp(field_, native_, bytes), 0) << "seed " << seed;
    EXPECT_EQ(checker_.violation_count(), 0U) << "seed " << seed << ": " << sentences_.at(0);
  }

 private:
  std::size_t below(std::size_t n) { return random_() % n; }

  void one_step() {
    switch (below(6)) {
      case 0:
      case 1: {
        const std::size_t first = below(bytes);
        update(row(first, 1 + below(bytes - first)));
        return;
      }
      case 2:
        update(random_box());
        return;
      case 3: {
        nest_end();
        const std::size_t i = below(bytes);
        store(i, native_[i] = static_cast<std::uint8_t>(random_()));
        EXPECT_EQ(load(i), native_[i]);
        return;
      }
      case 4:
        nest_end();
        if (below(2) == 0) checker_.plain(address(0));
        for (std::size_t i = 0; i < bytes; ++i) EXPECT_EQ(load(i), native_[i]) << i;
        return;
      default:
        nest_end();
        persist();
    }
  }

  RowBox random_box() {
    RowBox box = row(below(20), 1 + below(5));
    box.dimensions = 2 + static_cast<unsigned>(below(2));
    box.counts[1] = 1 + below(4);
    box.strides[1] = box.counts[0] + below(6);
    box.counts[2] = 1 + below(3);
    box.strides[2] = box.counts[1] * box.strides[1] + below(9);
    return box;
  }

  std::mt19937_64 random_;
};

class RandomHistories : public testing::Test {};

TEST(CheckerHistories, those_that_keep_to_the_rules_end_as_in_plain_memory) {
  class One : public RandomHistory {
   public:
    void TestBody() override {}
    using RandomHistory::run;
  };
  const char* given = std::getenv("PERDURE_TEST_SEED");
  const std::uint64_t first = given != nullptr ? std::strtoull(given, nullptr, 10) : 1;
  for (std::uint64_t seed = first; seed < first + (given != nullptr ? 1 : 5000); ++seed) {
    One().run(seed);
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace perdure::ipv_check
