// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes and times by the table that Python is tested against too.
#include "base/quantity.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "source_tree.hpp"

namespace perdure {
namespace {

TEST(Quantities, are_read_as_the_table_for_python_and_this_says) {
  std::ifstream table(source_file("tests/grammar/quantities.txt"));
  ASSERT_TRUE(table.is_open());
  int cases = 0;
  for (std::string line; std::getline(table, line);) {
    if (line.empty() || line.front() == '#') continue;
    const std::size_t open = line.find('\'');
    const std::size_t close = line.rfind('\'');
    ASSERT_NE(open, close) << line;
    const std::string text = line.substr(open + 1, close - open - 1);
    const std::string expected = line.substr(close + 2);
    const auto read = line.starts_with("size") ? parse_size(text) : parse_time_ns(text);
    EXPECT_EQ(read.has_value() ? std::to_string(*read) : "-", expected) << line;
    ++cases;
  }
  EXPECT_GT(cases, 80);
}

TEST(Numbers, are_what_the_whole_text_says) {
  EXPECT_EQ(number_in<std::uint16_t>("65535"), 65535);
  EXPECT_EQ(number_in<int>("-3"), -3);
  EXPECT_EQ(number_in<std::uint64_t>("ff", 16), 255U);
  EXPECT_EQ(number_in<double>("0.5e1"), 5.0);
  for (const char* text : {"", "1 ", " 1", "+1", "1x", "65536", "-1"}) {
    EXPECT_EQ(number_in<std::uint16_t>(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace perdure
