// SPDX-License-Identifier: BSD-3-Clause
//
// base: Status and Result carry what was decided; the checksum is the published CRC-64.
#include <gtest/gtest.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <array>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/checksum.hpp"
#include "base/group.hpp"
#include "base/status.hpp"

namespace perdure {
namespace {

TEST(Status, a_full_device_is_told_apart_from_other_errors) {
  EXPECT_EQ(errno_status("fallocate", ENOSPC).code(), Code::no_space);
  EXPECT_EQ(errno_status("fallocate", EDQUOT).code(), Code::no_space);
  EXPECT_EQ(errno_status("open", EACCES).code(), Code::io_error);
  EXPECT_NE(errno_status("open /x", EACCES).message().find("/x"), std::string::npos);
}

TEST(Status, has_the_sentence_that_its_parts_make) {
  const std::string path = "a/b";
  const std::string_view word = "rank";
  const Status status(Code::not_found, path, ": ", word, " is ", -3, " of ",
                      std::uint64_t{18446744073709551615U}, ", ", std::uint16_t{7});
  EXPECT_EQ(status.code(), Code::not_found);
  EXPECT_EQ(status.message(), "a/b: rank is -3 of 18446744073709551615, 7");
  EXPECT_EQ(sentence(std::numeric_limits<std::int64_t>::min(), " to ", 0),
            "-9223372036854775808 to 0");
}

TEST(Status, lists_what_its_sentence_is_about) {
  EXPECT_EQ(listed(std::vector<std::string>()), "");
  EXPECT_EQ(listed(std::vector<std::string>{"a"}), "a");
  EXPECT_EQ(listed(std::set<int>{3, -1, 2}), "-1, 2, 3");
  const std::vector<std::pair<int, const char*>> pairs = {{1, "x"}, {2, "y"}};
  EXPECT_EQ(listed(pairs, &std::pair<int, const char*>::second, " and "), "x and y");
  EXPECT_EQ(listed(pairs, [](const auto& pair) { return "n" + std::to_string(pair.first); }),
            "n1, n2");
}

TEST(Status, names_the_newer_format_and_the_newest_that_is_read) {
  const Status status = newer_format("pool/job", 7, 2);
  EXPECT_EQ(status.code(), Code::newer_format);
  EXPECT_EQ(status.message(),
            "pool/job has format 7, this Perdure reads up to 2; use the version "
            "that wrote it, or a newer one");
}

TEST(Status, every_code_has_a_text) {
  for (int code = 0; code >= static_cast<int>(Code::peer_failed); --code) {
    EXPECT_STRNE(code_text(static_cast<Code>(code)), "unknown error code") << code;
  }
}

Result<int> half(int value) {
  if (value % 2 != 0) return Status(Code::invalid_argument, "odd");
  return value / 2;
}

TEST(Result, holds_a_value_or_a_status) {
  EXPECT_EQ(half(4).value(), 2);
  EXPECT_EQ(half(3).status().code(), Code::invalid_argument);
}

// The check value of CRC-64/XZ for "123456789", from the RevEng catalogue of CRC algorithms.
TEST(Checksum, is_the_same_without_isa_l) {
  std::vector<unsigned char> bytes(1000);
  std::uint64_t state = 7;
  for (unsigned char& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<unsigned char>(state >> 56U);
  }
  for (std::size_t first = 0; first < 9; ++first) {
    for (std::size_t count = 0; first + count <= bytes.size(); count += 1 + count / 7) {
      EXPECT_EQ(crc64_by_table(&bytes[first], count, count), crc64(&bytes[first], count, count));
    }
  }
}

TEST(Checksum, is_crc64_ecma_reflected) {
  EXPECT_EQ(crc64("123456789", 9), 0x995dc9bbdf1939faU);
}

TEST(Checksum, can_be_continued) {
  const std::string text = "the state of a solver";
  const std::uint64_t first = crc64(text.data(), 7);
  EXPECT_EQ(crc64(text.data() + 7, text.size() - 7, first), crc64(text.data(), text.size()));
}

TEST(Checksum, sees_every_flipped_bit) {
  std::string text(64, 'a');
  const std::uint64_t good = crc64(text.data(), text.size());
  for (std::size_t bit = 0; bit < text.size() * 8; ++bit) {
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_NE(crc64(text.data(), text.size()), good) << bit;
    text[bit / 8] = static_cast<char>(text[bit / 8] ^ (1 << (bit % 8)));
  }
}

TEST(SoloGroup, has_nobody_to_send_to) {
  SoloGroup group;
  std::array<std::byte, 4> bytes{};
  for (const std::uint32_t other : {0U, 1U}) {
    EXPECT_EQ(group.send(other, bytes).code(), Code::invalid_argument) << other;
    EXPECT_EQ(group.receive(other, bytes).code(), Code::invalid_argument) << other;
    EXPECT_EQ(group.start_send(other, bytes).status().code(), Code::invalid_argument) << other;
    EXPECT_EQ(group.start_receive(other, bytes).status().code(), Code::invalid_argument) << other;
  }
}

#if defined(__x86_64__)
// Whether the processor holds anything but zeros in the upper halves of the vector registers, and
// nothing if it does not tell.
[[gnu::target("xsave")]] std::optional<bool> upper_halves_in_use() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid_count(13, 1, &a, &b, &c, &d) == 0 || (a & 4U) == 0) return std::nullopt;
  constexpr unsigned ymm_and_zmm = 1U << 2 | 1U << 6;
  return (_xgetbv(1) & ymm_and_zmm) != 0;
}

// In use, they make every later SSE instruction of the program slower on some processors.
TEST(Checksum, leaves_no_upper_half_of_a_vector_register_in_use) {
  std::vector<std::byte> bytes(1 << 16);
  const std::uint64_t checksum = crc64(bytes.data(), bytes.size());
  const std::optional<bool> in_use = upper_halves_in_use();
  if (!in_use) GTEST_SKIP() << "this processor does not tell";
  EXPECT_FALSE(*in_use) << checksum;
}
#endif

}  // namespace
}  // namespace perdure
