// SPDX-License-Identifier: BSD-3-Clause
//
// Copies between random layouts, against a copy of single bytes.
#include "rma/copy_runs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "mpi/testing/draw_maps.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr std::int64_t room = 12000;  // on either side of an item

// One of four: all bytes side by side, equal runs, the same equally far from each other, or runs of
// any length, some before the item.
DatatypeMap draw_map(Generator& draw) {
  RunList list;
  const std::int64_t kind = between(draw, 0, 3);
  if (kind == 0) {
    const std::int64_t bytes = between(draw, 1, 40);
    list.add(0, bytes);
    return map_of_runs(list, bytes);
  }
  constexpr std::int64_t words[] = {4, 8, 16, 12, 32, 64};
  const std::int64_t word = words[between(draw, 0, 5)];
  const std::int64_t gap = between(draw, 1, 20);
  std::int64_t at = kind == 1 ? 0 : between(draw, -30, 30);
  const std::int64_t first = at;
  for (std::int64_t i = between(draw, 1, 8); i > 0; --i) {
    const std::int64_t bytes = kind == 3 ? between(draw, 1, 20) : word;
    list.add(at, bytes);
    at += bytes + (kind == 2 ? gap : between(draw, 1, 20));
  }
  // Often as far from the last run to the next item as from run to run.
  if (kind == 2 && between(draw, 0, 1) == 0) return map_of_runs(list, at - first);
  return map_of_runs(list, between(draw, 0, 1) == 0 ? at + 30 : -at - 30);
}

// Where each carried byte of `count` items lies.
std::vector<std::int64_t> every_byte(const DatatypeMap& map, std::int64_t count) {
  std::vector<std::int64_t> offsets;
  for (std::int64_t item = 0; item < count; ++item) {
    for (const ByteRun& run : map.runs) {
      for (std::int64_t i = 0; i < run.bytes; ++i) {
        offsets.push_back(item * map.extent_bytes + run.offset + i);
      }
    }
  }
  return offsets;
}

TEST(CopyRuns, every_byte_goes_where_a_copy_of_single_bytes_puts_it) {
  Generator draw(test_seed());
  for (int round = 0; round < 2000; ++round) {
    const DatatypeMap to = draw_map(draw);
    const DatatypeMap from = draw_map(draw);
    const auto to_bytes = every_byte(to, 12);
    const auto from_bytes = every_byte(from, 12);
    const auto bytes = static_cast<std::int64_t>(std::min(to_bytes.size(), from_bytes.size()));
    std::vector<std::byte> source(2 * room);
    for (std::byte& each : source) each = static_cast<std::byte>(draw());
    std::vector<std::byte> target(2 * room);
    std::vector<std::byte> expected = target;
    for (std::size_t i = 0; i < static_cast<std::size_t>(bytes); ++i) {
      expected[static_cast<std::size_t>(room + to_bytes[i])] =
          source[static_cast<std::size_t>(room + from_bytes[i])];
    }
    copy_runs({target.data() + room, &to}, {source.data() + room, &from}, bytes);
    ASSERT_EQ(target, expected) << "round " << round;
  }
}

TEST(CopyRuns, a_span_is_from_the_first_byte_to_the_last) {
  Generator draw(7);
  for (int round = 0; round < 500; ++round) {
    const DatatypeMap map = draw_map(draw);
    const std::int64_t count = between(draw, 1, 12);
    const auto bytes = every_byte(map, count);
    const ByteSpan span = span_of(map, count);
    EXPECT_TRUE(span.valid);
    EXPECT_EQ(span.first, *std::min_element(bytes.begin(), bytes.end()));
    EXPECT_EQ(span.end, *std::max_element(bytes.begin(), bytes.end()) + 1);
  }
}

TEST(CopyRuns, a_span_that_does_not_fit_into_64_bits_is_not_valid) {
  RunList list;
  list.add(0, 8);
  const DatatypeMap map = map_of_runs(list, 8);
  EXPECT_FALSE(span_of(map, std::numeric_limits<std::int64_t>::max() / 4).valid);
  EXPECT_TRUE(span_of(map, 0).valid);
  EXPECT_EQ(span_of(map, 0).end, 0);
  EXPECT_EQ(span_of(map, 3).end, 24);
}

}  // namespace
}  // namespace perdure
