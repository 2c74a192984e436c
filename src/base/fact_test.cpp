// SPDX-License-Identifier: BSD-3-Clause
//
// Facts: medians and quartiles, claims that hold or not, and one line of JSON each.
// ctest: NAME base_test
#include "base/fact.hpp"

#include <gtest/gtest.h>

namespace perdure {
namespace {

TEST(Fact, is_the_median_and_the_quartiles_of_its_samples) {
  const Fact fact = of_samples({}, {5, 1, 4, 2, 3});
  EXPECT_EQ(fact.value, 3);
  EXPECT_EQ(fact.low, 2);
  EXPECT_EQ(fact.high, 4);
  EXPECT_EQ(fact.n, 5U);
  EXPECT_EQ(of_samples({}, {1, 2}).value, 1.5);
}

TEST(Fact, claims_hold_up_to_the_target_itself) {
  const Fact fact = of_samples({}, {1.05});
  EXPECT_EQ(at_most(1.05, fact).holds, true);
  EXPECT_EQ(at_least(1.06, fact).holds, false);
}

TEST(Fact, without_samples_is_absent_and_holds_nothing) {
  const Fact fact = at_most(1, of_samples({}, {}));
  EXPECT_FALSE(fact.value.has_value());
  EXPECT_FALSE(fact.holds.has_value());
}

TEST(Fact, is_one_line_of_json_with_a_fixed_order) {
  Fact fact{.bench = "persist", .name = "copy/1", .metric = "ratio", .unit = "1"};
  fact.more = {{"size_bytes", std::int64_t{64}}, {"part", std::string("a \"b\"\n")}};
  EXPECT_EQ(fact_line(of_samples(fact, {0.5})),
            R"({"bench":"persist","case":"copy/1","metric":"ratio","value":0.5,"unit":"1",)"
            R"("low":0.5,"high":0.5,"n":1,"target":null,"holds":null,"size_bytes":64,)"
            R"("part":"a \"b\"\n"})");
}

TEST(Fact, prints_null_for_what_is_absent) {
  const std::string line = fact_line(Fact{});
  EXPECT_NE(line.find("\"value\":null"), std::string::npos);
  EXPECT_NE(line.find("\"n\":0"), std::string::npos);
}

}  // namespace
}  // namespace perdure
