// SPDX-License-Identifier: BSD-3-Clause
//
// Data checksums: XXH3 is that of the library, whatever instructions compute it; pieces add up to
// blocks; and the choice is the fastest.
// ctest: NAME base_test
#include "base/data_checksum.hpp"

#include <gtest/gtest.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <vector>

#include "base/checksum.hpp"

namespace perdure {
namespace {

std::vector<std::uint64_t> noise(std::size_t words) {
  std::mt19937_64 random(7);
  std::vector<std::uint64_t> all(words);
  for (std::uint64_t& word : all) word = random();
  return all;
}

TEST(DataChecksums, of_a_piece_are_those_of_their_libraries) {
  const auto words = noise(data_piece_bytes / 8);
  for (const std::size_t bytes : {0UL, 1UL, 16UL, 17UL, 240UL, 241UL, 4097UL, data_piece_bytes}) {
    EXPECT_EQ(data_checksum(DataChecksum::xxh3, words.data(), bytes),
              XXH3_64bits(words.data(), bytes));
    EXPECT_EQ(data_checksum(DataChecksum::crc64, words.data(), bytes), crc64(words.data(), bytes));
    EXPECT_EQ(data_checksum(DataChecksum::none, words.data(), bytes), 0U);
  }
}

TEST(DataChecksums, of_blocks_are_made_of_pieces_in_turn) {
  const auto words = noise(3 * data_piece_bytes / 8);
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  for (const DataChecksum kind : {DataChecksum::crc64, DataChecksum::xxh3}) {
    const std::size_t last = 100;
    std::uint64_t sum = add_data_piece(kind, bytes, data_piece_bytes, 0);
    sum = add_data_piece(kind, bytes + data_piece_bytes, data_piece_bytes, sum);
    sum = add_data_piece(kind, bytes + 2 * data_piece_bytes, last, sum);
    EXPECT_EQ(data_checksum(kind, bytes, 2 * data_piece_bytes + last), sum);
  }
}

TEST(DataChecksums, of_a_piece_in_turns_are_those_of_it_at_once) {
  const auto words = noise(data_piece_bytes / 8);
  const auto* bytes = reinterpret_cast<const std::byte*>(words.data());
  for (const DataChecksum kind : {DataChecksum::crc64, DataChecksum::xxh3}) {
    for (const std::size_t size : {0UL, 1UL, 240UL, 241UL, 4097UL, data_piece_bytes}) {
      for (const std::size_t turn : {100UL, 256UL, 1024UL, 3000UL}) {
        PieceChecksum piece(kind, 42);
        for (std::size_t at = 0; at < size; at += turn) {
          piece.add(bytes + at, std::min(turn, size - at));
        }
        EXPECT_EQ(piece.value(), add_data_piece(kind, bytes, size, 42)) << size << " by " << turn;
      }
    }
  }
}

// One of each bit, in a block of two pieces.
TEST(DataChecksums, notice_every_flipped_bit) {
  auto words = noise(data_piece_bytes / 8 + 16);
  const std::size_t bytes = 8 * words.size();
  for (const DataChecksum kind : {DataChecksum::crc64, DataChecksum::xxh3}) {
    const std::uint64_t before = data_checksum(kind, words.data(), bytes);
    for (std::size_t bit = 0; bit < 8 * bytes; bit += 251) {
      words[bit / 64] ^= std::uint64_t{1} << bit % 64;
      EXPECT_NE(data_checksum(kind, words.data(), bytes), before) << bit;
      words[bit / 64] ^= std::uint64_t{1} << bit % 64;
    }
  }
}

TEST(DataChecksums, of_new_arrays_are_the_fastest_or_as_said) {
  EXPECT_EQ(fastest_data_checksum(true, true, true), DataChecksum::crc64);
  EXPECT_EQ(fastest_data_checksum(false, true, true), DataChecksum::xxh3);
  EXPECT_EQ(fastest_data_checksum(true, false, true), DataChecksum::xxh3);    // no ISA-L
  EXPECT_EQ(fastest_data_checksum(false, true, false), DataChecksum::crc64);  // an old processor
  EXPECT_EQ(fastest_data_checksum(false, false, false), DataChecksum::xxh3);
  ::setenv("PERDURE_CHECKSUM", "xxh3", 1);
  EXPECT_EQ(chosen_data_checksum().value(), DataChecksum::xxh3);
  ::setenv("PERDURE_CHECKSUM", "crc64", 1);
  EXPECT_EQ(chosen_data_checksum().value(), DataChecksum::crc64);
  ::setenv("PERDURE_CHECKSUM", "md5", 1);
  EXPECT_EQ(chosen_data_checksum().status().code(), Code::invalid_argument);
  ::unsetenv("PERDURE_CHECKSUM");
  EXPECT_NE(chosen_data_checksum().value(), DataChecksum::none);
}

}  // namespace
}  // namespace perdure
