// SPDX-License-Identifier: BSD-3-Clause
//
// Noted ranges: whatever the order of notes, what is taken covers them, sorted and bounded.
#include "pmem/page_ranges.hpp"

#include <gtest/gtest.h>

#include <random>

namespace perdure {
namespace {

TEST(PageRanges, joins_ranges_that_touch_or_overlap) {
  PageRanges ranges;
  for (const ByteRange range : {ByteRange{0, 10}, {10, 20}, {40, 50}, {15, 18}, {30, 41}}) {
    ranges.add(range);
  }
  EXPECT_EQ(ranges.take(), (std::vector<ByteRange>{{0, 20}, {30, 50}}));
  EXPECT_TRUE(ranges.take().empty());
}

TEST(PageRanges, ignores_empty_ranges) {
  PageRanges ranges;
  ranges.add({5, 5});
  EXPECT_TRUE(ranges.take().empty());
}

TEST(PageRanges, becomes_one_range_when_there_are_too_many) {
  PageRanges ranges(4);
  for (std::uint64_t i = 0; i < 100; ++i) ranges.add({i * 10, i * 10 + 1});
  const std::vector<ByteRange> taken = ranges.take();
  EXPECT_LE(taken.size(), 4U);
  EXPECT_EQ(taken.front().begin, 0U);
  EXPECT_EQ(taken.back().end, 991U);
  for (std::uint64_t i = 0; i < 5; ++i) ranges.add({i * 10, i * 10 + 1});  // just one too many
  EXPECT_EQ(ranges.take(), (std::vector<ByteRange>{{0, 41}}));
}

TEST(PageRanges, covers_exactly_what_was_noted_when_it_is_little) {
  std::mt19937 random(2024);
  for (int round = 0; round < 500; ++round) {
    PageRanges ranges;
    std::vector<bool> noted(200);
    for (int i = 0; i < 20; ++i) {
      const std::uint64_t begin = random() % 180;
      const std::uint64_t end = begin + random() % 20;
      ranges.add({begin, end});
      for (std::uint64_t at = begin; at < end; ++at) noted[at] = true;
    }
    std::vector<bool> taken(200);
    std::uint64_t last_end = 0;
    for (const ByteRange range : ranges.take()) {
      ASSERT_TRUE(range.begin > last_end || last_end == 0);
      last_end = range.end;
      for (std::uint64_t at = range.begin; at < range.end; ++at) taken[at] = true;
    }
    ASSERT_EQ(taken, noted) << "round " << round;
  }
}

}  // namespace
}  // namespace perdure
