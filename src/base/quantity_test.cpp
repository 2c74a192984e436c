// SPDX-License-Identifier: BSD-3-Clause
//
// Sizes and times by the table that Python is tested against too.
#include "base/quantity.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace perdure {
namespace {

TEST(Quantities, are_read_as_the_table_for_python_and_this_says) {
  std::ifstream table(PERDURE_QUANTITIES);
  ASSERT_TRUE(table.is_open()) << PERDURE_QUANTITIES;
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

}  // namespace
}  // namespace perdure
