// SPDX-License-Identifier: BSD-3-Clause
//
// Lists of pieces: what they say is what was added, in order; regular ones are short; and nothing
// that a stranger could send passes for one.
#include "cache/piece_list.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <random>
#include <string>
#include <utility>

#include "test_seed.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t file_bytes_max = std::numeric_limits<std::int64_t>::max();

// Each byte of the file that the list is about, in order.
std::vector<std::uint64_t> bytes_of(const PieceList& list) {
  std::vector<std::uint64_t> all;
  for (const PiecesFormat& run : list.runs()) {
    for (std::uint64_t i = 0; i < run.count; ++i) {
      for (std::uint64_t at = 0; at < run.bytes; ++at) {
        all.push_back(run.offset + i * run.stride + at);
      }
    }
  }
  return all;
}

TEST(PieceList, says_what_was_added_in_the_order_in_which_it_was) {
  std::mt19937_64 random(test_seed());
  std::vector<std::byte> memory(1 << 20);
  for (int trial = 0; trial < 2000; ++trial) {
    PieceList list;
    std::vector<std::uint64_t> expected;
    std::vector<std::byte*> places;
    std::uint64_t offset = random() % 100;
    std::uint64_t at = 0;
    for (std::uint64_t left = random() % 40; left != 0; --left) {
      const std::uint64_t bytes = 1 + random() % 3;
      list.add(offset, memory.data() + at, bytes);
      for (std::uint64_t i = 0; i < bytes; ++i) {
        expected.push_back(offset + i);
        places.push_back(memory.data() + at + i);
      }
      at += bytes + random() % 2;
      // Neighbours, regular gaps, backwards, and what overlaps, which reads may do.
      offset = random() % 8 == 0 ? random() % 100 : offset + bytes + random() % 3;
    }
    ASSERT_EQ(bytes_of(list), expected);
    ASSERT_EQ(list.bytes(), expected.size());
    std::vector<std::byte*> found;
    for (const MemoryPiece& piece : list.memory()) {
      for (std::uint64_t i = 0; i < piece.bytes; ++i) found.push_back(piece.at + i);
    }
    ASSERT_EQ(found, places);
    EXPECT_TRUE(check_pieces(list.runs(), list.bytes()).ok());
  }
}

TEST(PieceList, runs_that_are_added_whole_are_the_same_as_piece_by_piece) {
  std::mt19937_64 random(test_seed());
  std::vector<std::byte> memory(1 << 16);
  for (int trial = 0; trial < 500; ++trial) {
    PieceList whole;
    PieceList one_by_one;
    std::uint64_t at = 0;
    std::uint64_t offset = 0;
    for (int runs = 0; runs < 6; ++runs) {
      PiecesFormat run{offset, 0, static_cast<std::uint32_t>(1 + random() % 3),
                       static_cast<std::uint32_t>(1 + random() % 9)};
      run.stride = run.bytes + random() % 3;
      whole.add_regular(run, &memory[at]);
      for (std::uint64_t i = 0; i < run.count; ++i) {
        one_by_one.add(offset + i * run.stride, &memory[at + i * run.bytes], run.bytes);
      }
      offset += run.count * run.stride + random() % 4;
      at += std::uint64_t{run.count} * run.bytes + random() % 2;
    }
    ASSERT_EQ(bytes_of(whole), bytes_of(one_by_one));
    ASSERT_EQ(whole.memory().size(), one_by_one.memory().size());
    EXPECT_TRUE(check_pieces(whole.runs(), whole.bytes()).ok());
  }
}

TEST(PieceList, a_vector_is_one_run_however_its_memory_lies) {
  std::vector<std::byte> memory(400000);
  for (const std::uint64_t apart : {4U, 12U}) {
    PieceList list;
    for (std::uint64_t i = 0; i < 20000; ++i) list.add(100 + i * 8, &memory[i * apart], 4);
    ASSERT_EQ(list.runs().size(), 1U);
    EXPECT_EQ(list.runs()[0].count, 20000U);
    EXPECT_EQ(list.memory().size(), apart == 4 ? 1U : 20000U);
  }
  // Memory in smaller pieces than the file.
  PieceList halves;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    halves.add(i / 2 * 16 + i % 2 * 4, &memory[i * 8], 4);
  }
  EXPECT_LE(halves.runs().size(), 2U);
  EXPECT_EQ(halves.runs()[0].bytes, 8U);
}

TEST(PieceList, bytes_of_memory_are_gathered_and_scattered_in_order) {
  std::vector<std::byte> memory(1000);
  for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = std::byte(i * 7);
  const std::vector<std::byte> before = memory;
  std::vector<MemoryPiece> pieces;
  std::uint64_t sum = 0;
  for (const std::uint64_t bytes : {4U, 8U, 16U, 1U, 100U, 3U}) {
    pieces.push_back({&memory[pieces.size() * 150 + 1], bytes});
    sum += bytes;
  }
  std::vector<std::byte> together(sum);
  gather(pieces, together.data());
  std::ranges::fill(memory, std::byte{0});
  scatter(together.data(), pieces);
  for (const MemoryPiece& piece : pieces) {
    for (std::uint64_t i = 0; i < piece.bytes; ++i) {
      const auto at = static_cast<std::size_t>(piece.at + i - memory.data());
      EXPECT_EQ(memory[at], before[at]);
    }
  }
}

TEST(PieceList, pieces_are_counted_by_blocks_as_one_by_one) {
  std::mt19937_64 random(test_seed());
  const Layout layout{LayoutKind::cyclic, 3, 64, 0};
  for (int trial = 0; trial < 1000; ++trial) {
    PiecesFormat run{random() % 200, 0, static_cast<std::uint32_t>(1 + random() % 90),
                     static_cast<std::uint32_t>(1 + random() % 50)};
    run.stride = run.bytes + random() % 70;
    std::uint64_t next = 0;
    const Status done = for_each_block_of(layout, run, [&](std::uint64_t offset, std::uint64_t n) {
      EXPECT_EQ(offset, run.offset + next * run.stride);
      for (std::uint64_t i = 0; i < n; ++i) {
        const std::uint64_t at = offset + i * run.stride;
        EXPECT_EQ(at / 64, offset / 64);
        EXPECT_EQ((at + run.bytes - 1) / 64, offset / 64);
      }
      EXPECT_EQ(n == 0, (offset + run.bytes - 1) / 64 != offset / 64);
      next += n == 0 ? 1 : n;
      return Status::success();
    });
    ASSERT_TRUE(done.ok());
    ASSERT_EQ(next, run.count);
  }
}

TEST(PieceList, what_can_not_be_right_is_refused) {
  const auto refused = [](PiecesFormat run, std::uint64_t bytes) {
    return check_pieces({&run, 1}, bytes).code() == Code::invalid_argument;
  };
  EXPECT_FALSE(refused({100, 8, 4, 10}, 40));
  EXPECT_TRUE(refused({100, 8, 4, 10}, 39));
  EXPECT_TRUE(refused({100, 8, 4, 10}, 41));
  EXPECT_TRUE(refused({100, 8, 0, 10}, 0));
  EXPECT_TRUE(refused({100, 8, 4, 0}, 0));
  EXPECT_TRUE(refused({100, 3, 4, 10}, 40));
  EXPECT_TRUE(refused({100, 0, 4, 1}, 4));
  EXPECT_FALSE(refused({file_bytes_max - 4, 4, 4, 1}, 4));
  EXPECT_TRUE(refused({file_bytes_max - 3, 4, 4, 1}, 4));
  EXPECT_TRUE(refused({~std::uint64_t{0}, 4, 4, 1}, 4));
  EXPECT_TRUE(refused({0, ~std::uint64_t{0}, 4, 2}, 8));
  EXPECT_TRUE(refused({0, file_bytes_max / 2 + 10, 1, 3}, 3));
  EXPECT_TRUE(refused({0, std::uint64_t{1} << 62, 1U << 31, ~0U}, 1000));
  const std::vector<PiecesFormat> many(3, PiecesFormat{0, 1U << 31, 1U << 31, ~0U});
  EXPECT_FALSE(check_pieces(many, 1000).ok());
  EXPECT_FALSE(check_pieces({}, 1).ok());
}

}  // namespace
}  // namespace perdure
