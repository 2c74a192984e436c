// SPDX-License-Identifier: BSD-3-Clause
//
// Accumulates between random layouts, against one element at a time, and which operation there is
// for which element.
#include "rma/reduce.hpp"

#include <gtest/gtest.h>

#include <complex>
#include <cstring>
#include <limits>
#include <vector>

#include "mpi/testing/draw_maps.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

using Word = std::int32_t;
constexpr std::int64_t word_bytes = sizeof(Word);
constexpr std::int64_t room = 12000;  // on either side of an item
constexpr std::int64_t words = 60;

// Runs of words, some before the item, or words side by side.
DatatypeMap draw_map(Generator& draw) {
  RunList list;
  if (between(draw, 0, 2) == 0) {
    const std::int64_t bytes = word_bytes * between(draw, 1, 10);
    list.add(0, bytes);
    return map_of_runs(list, bytes);
  }
  std::int64_t at = between(draw, -30, 30);
  for (std::int64_t i = between(draw, 1, 6); i > 0; --i) {
    const std::int64_t bytes = word_bytes * between(draw, 1, 5);
    list.add(at, bytes);
    at += bytes + between(draw, 1, 20);
  }
  return map_of_runs(list, between(draw, 0, 1) == 0 ? at + 30 : -at - 30);
}

// Where each word lies, from room on.
std::vector<std::size_t> places(const DatatypeMap& map) {
  std::vector<std::size_t> found;
  for (std::int64_t item = 0; found.size() < words; ++item) {
    for (const ByteRun& run : map.runs) {
      for (std::int64_t i = 0; i < run.bytes; i += word_bytes) {
        found.push_back(static_cast<std::size_t>(room + item * map.extent_bytes + run.offset + i));
      }
    }
  }
  return found;
}

Word word_at(const std::vector<std::byte>& memory, std::size_t at) {
  Word word = 0;
  std::memcpy(&word, &memory[at], sizeof word);
  return word;
}

std::vector<std::byte> draw_bytes(Generator& draw) {
  std::vector<std::byte> bytes(2 * room);
  for (std::byte& each : bytes) each = static_cast<std::byte>(draw());
  return bytes;
}

TEST(Reduce, every_element_becomes_what_one_at_a_time_makes_of_it) {
  Generator draw(test_seed());
  for (int round = 0; round < 1000; ++round) {
    const DatatypeMap maps[] = {draw_map(draw), draw_map(draw), draw_map(draw)};
    const std::vector<std::size_t> at[] = {places(maps[0]), places(maps[1]), places(maps[2])};
    std::vector<std::byte> target = draw_bytes(draw);
    std::vector<std::byte> origin = draw_bytes(draw);
    std::vector<std::byte> result = draw_bytes(draw);
    std::vector<std::byte> expected = target;
    std::vector<std::byte> expected_result = result;
    const bool fetches = between(draw, 0, 1) == 0;
    for (std::size_t i = 0; i < words; ++i) {
      const Word before = word_at(target, at[0][i]);
      const Word after = before ^ word_at(origin, at[1][i]);
      std::memcpy(&expected[at[0][i]], &after, sizeof after);
      if (fetches) std::memcpy(&expected_result[at[2][i]], &before, sizeof before);
    }
    const Runs to = {result.data() + room, &maps[2]};
    ReducingWalk walk(reduction(Reduction::bxor, Element::int32), {target.data() + room, &maps[0]},
                      {origin.data() + room, &maps[1]}, fetches ? &to : nullptr);
    const std::int64_t first = word_bytes * between(draw, 0, words);
    walk.advance(first);
    walk.advance(word_bytes * words - first);
    ASSERT_EQ(target, expected) << "round " << round;
    ASSERT_EQ(result, expected_result) << "round " << round;
  }
}

// Of what is in the target, and of the origin's.
template <typename T>
T reduced(Reduction op, Element element, T target, T origin) {
  const Reduce reduce = reduction(op, element);
  if (reduce == nullptr) {
    ADD_FAILURE() << "no function for operation " << static_cast<int>(op);
    return T{};
  }
  std::byte there[sizeof(T)];
  std::byte here[sizeof(T)];
  std::memcpy(there, &target, sizeof target);
  std::memcpy(here, &origin, sizeof origin);
  reduce(there, here, sizeof(T));
  std::memcpy(&target, there, sizeof target);
  return target;
}

TEST(Reduce, integers_wrap_around) {
  using Limits = std::numeric_limits<std::int64_t>;
  EXPECT_EQ(reduced<std::int64_t>(Reduction::sum, Element::int64, Limits::max(), 1), Limits::min());
  EXPECT_EQ(reduced<std::int64_t>(Reduction::prod, Element::int64, Limits::max(), 2), -2);
  EXPECT_EQ(reduced<std::uint16_t>(Reduction::prod, Element::uint16, 65535, 65535), 1);
  EXPECT_EQ(reduced<std::int8_t>(Reduction::sum, Element::int8, 127, 1), -128);
}

TEST(Reduce, what_has_a_sign_is_ordered_by_it) {
  EXPECT_EQ(reduced<std::int32_t>(Reduction::min, Element::int32, 1, -1), -1);
  EXPECT_EQ(reduced<std::uint32_t>(Reduction::min, Element::uint32, 1, ~0U), 1U);
  EXPECT_EQ(reduced<std::uint8_t>(Reduction::max, Element::uint8, 1, 255), 255);
  EXPECT_EQ(reduced<double>(Reduction::max, Element::float64, -1, -2), -1);
  EXPECT_EQ(reduced<std::complex<float>>(Reduction::prod, Element::complex32, {0, 1}, {0, 1}),
            std::complex<float>(-1, 0));
}

TEST(Reduce, only_what_mpi_allows_on_an_element_is_there) {
  EXPECT_EQ(reduction(Reduction::band, Element::float64), nullptr);
  EXPECT_EQ(reduction(Reduction::land, Element::float32), nullptr);
  EXPECT_EQ(reduction(Reduction::max, Element::complex64), nullptr);
  EXPECT_EQ(reduction(Reduction::sum, Element::byte), nullptr);
  EXPECT_EQ(reduction(Reduction::bor, Element::boolean), nullptr);
  for (const Element element : {Element::none, Element::other}) {
    for (int op = 0; op <= static_cast<int>(Reduction::no_op); ++op) {
      EXPECT_EQ(reduction(static_cast<Reduction>(op), element), nullptr);
    }
  }
  EXPECT_TRUE(is_swappable(Element::int8) && is_swappable(Element::byte));
  EXPECT_TRUE(is_swappable(Element::boolean));
  EXPECT_FALSE(is_swappable(Element::float64) || is_swappable(Element::other));
}

}  // namespace
}  // namespace perdure
