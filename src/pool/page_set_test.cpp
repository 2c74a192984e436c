// SPDX-License-Identifier: BSD-3-Clause
//
// Page sets, against a plain list; and the checksums of blocks that are made of those of pages.
// ctest: NAME pool_arrays_test
#include "pool/page_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "pool/block_checksum.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

TEST(PageSets, hold_what_was_added) {
  std::mt19937_64 random(test_seed());
  for (const std::uint64_t bytes : {1U, 100U, 6400U, 6401U, 20000U}) {
    constexpr std::uint64_t page_bytes = 100;
    PageSet set(bytes, page_bytes);
    std::vector<bool> expected(set.pages());
    ASSERT_EQ(set.pages(), (bytes + page_bytes - 1) / page_bytes);
    for (int step = 0; step < 300; ++step) {
      const std::uint64_t begin = random() % bytes;
      const std::uint64_t end = begin + random() % (2 * page_bytes);  // perhaps beyond
      if (random() % 50 == 0) {
        set.clear();
        expected.assign(expected.size(), false);
      }
      set.add(ByteRange{begin, end});
      for (std::uint64_t at = begin; at < std::min(end, bytes); ++at) {
        expected[at / page_bytes] = true;
      }
      std::uint64_t members = 0;
      for (PageRun run = set.next_run(0); !run.empty(); run = set.next_run(run.end)) {
        for (std::uint64_t page = run.first; page < run.end; ++page) ASSERT_TRUE(expected[page]);
        members += run.end - run.first;
      }
      ASSERT_EQ(members, static_cast<std::uint64_t>(std::ranges::count(expected, true)));
      const PageRun within = set.pages_of({begin, end});
      std::uint64_t counted = 0;
      for (std::uint64_t page = within.first; page < within.end; ++page) {
        ASSERT_EQ(set.has(page), expected[page]);
        if (expected[page]) ++counted;
      }
      ASSERT_EQ(set.count(within), counted);
    }
  }
}

TEST(PageSets, are_joined_and_filled) {
  PageSet one(1000, 10);
  PageSet other(1000, 10);
  one.add_pages({3, 70});
  other.add_pages({69, 90});
  one.add(other);
  EXPECT_EQ(one.count({0, 100}), 87U);
  one.add_all();
  EXPECT_EQ(one.count({0, 100}), 100U);
  EXPECT_EQ(one.next_run(100).first, 100U);
}

// As docs/format.md has it.
TEST(BlockChecksums, of_pages_are_those_of_their_pages_checksums_in_turn) {
  std::mt19937_64 random(test_seed());
  std::vector<std::byte> bytes(16 * 256);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (const DataChecksum of : {DataChecksum::crc64, DataChecksum::xxh3}) {
    for (const std::size_t count : {std::size_t{4096}, std::size_t{1000}, std::size_t{1}}) {
      std::vector<std::uint64_t> of_pages(16);
      const std::uint64_t sum =
          block_checksum(by_pages(of), 4096, bytes.data(), count, of_pages.data());
      std::uint64_t expected = 0;
      for (std::size_t at = 0; at < count; at += 256) {
        const std::uint64_t page =
            data_checksum(of, bytes.data() + at, std::min<std::size_t>(256, count - at));
        EXPECT_EQ(of_pages[at / 256], page);
        expected = add_data_piece(of, &page, 8, expected);
      }
      EXPECT_EQ(sum, expected);
      EXPECT_EQ(sum, block_checksum(by_pages(of), 4096, bytes.data(), count));
      EXPECT_EQ(data_checksum(of, bytes.data(), count),
                block_checksum(of, 4096, bytes.data(), count));
    }
  }
}

TEST(BlockChecksums, of_pages_notice_every_flipped_bit_and_pages_that_changed_places) {
  std::mt19937_64 random(test_seed());
  std::vector<std::byte> bytes(16 * 64);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  for (const DataChecksum of : {DataChecksum::crc64, DataChecksum::xxh3}) {
    const auto sum = [&] { return block_checksum(by_pages(of), 1024, bytes.data(), 1024); };
    const std::uint64_t before = sum();
    for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
      bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      ASSERT_NE(sum(), before) << bit;
      bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    }
    std::swap_ranges(bytes.begin(), bytes.begin() + 64, bytes.begin() + 64);
    EXPECT_NE(sum(), before);
  }
}

}  // namespace
}  // namespace perdure
