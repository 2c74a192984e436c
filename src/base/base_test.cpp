// base: Status and Result carry what was decided; the checksum is the published CRC-64.
#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "base/checksum.hpp"
#include "base/status.hpp"

namespace perdure {
namespace {

TEST(Status, a_full_device_is_told_apart_from_other_errors) {
  EXPECT_EQ(errno_status("fallocate", ENOSPC).code(), Code::no_space);
  EXPECT_EQ(errno_status("fallocate", EDQUOT).code(), Code::no_space);
  EXPECT_EQ(errno_status("open", EACCES).code(), Code::io_error);
  EXPECT_NE(errno_status("open /x", EACCES).message().find("/x"), std::string::npos);
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

}  // namespace
}  // namespace perdure
