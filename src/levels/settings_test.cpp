// SPDX-License-Identifier: BSD-3-Clause
//
// The one grammar of what is kept on other levels.
// ctest: NAME levels_plan_test
#include "levels/settings.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <numeric>
#include <set>

namespace perdure {
namespace {

std::string file_of(const std::string& text) {
  const std::string path = testing::TempDir() + "levels-" + std::to_string(::getpid());
  std::ofstream(path) << text;
  return path;
}

TEST(LevelSettings, are_a_partner_on_several_nodes_and_nothing_on_one_by_default) {
  const auto settings = parse_level_settings("");
  ASSERT_TRUE(settings.ok());
  EXPECT_FALSE(settings.value().any());
  EXPECT_FALSE(settings.value().scheme(1).value());
  EXPECT_EQ(settings.value().scheme(2).value(), Scheme{});
  EXPECT_FALSE(parse_level_settings("redundancy=off").value().scheme(2).value());
}

TEST(LevelSettings, are_the_same_in_a_text_and_in_a_file) {
  const std::string text =
      "redundancy=rs:4+2;every=7;drain=/scratch/me;drain_every=14;drain_keep=3;patience=90s";
  const std::string lines =
      "# levels\n redundancy = rs:4+2\nevery=7 # versions\n\ndrain=/scratch/me\ndrain_every=14\n"
      "drain_keep=3\npatience=90s\n";
  for (const std::string& given : {text, file_of(lines)}) {
    const auto settings = parse_level_settings(given);
    ASSERT_TRUE(settings.ok()) << settings.status().message();
    EXPECT_EQ(settings.value().redundancy, "rs:4+2");
    EXPECT_EQ(settings.value().every, 7U);
    EXPECT_EQ(settings.value().drain, "/scratch/me");
    EXPECT_EQ(settings.value().drain_every, 14U);
    EXPECT_EQ(settings.value().drain_keep, 3U);
    EXPECT_EQ(settings.value().patience_ns, 90'000'000'000U);
  }
}

// Ranks compare it when they open a pool.
TEST(LevelSettings, have_another_text_where_any_key_differs) {
  const std::string drain = "drain=/scratch/me";
  std::set<std::string> texts;
  const std::string lineage(32, '5');
  const std::vector<std::string> given = {"",
                                          drain,
                                          drain + "x",
                                          "redundancy=off",
                                          "redundancy=xor:4",
                                          "every=7",
                                          "groups=/g",
                                          "patience=9s",
                                          "take=" + lineage,
                                          drain + ";drain_every=3",
                                          drain + ";drain_keep=3",
                                          drain + ";lease=9s"};
  for (const std::string& text : given) {
    const auto settings = parse_level_settings(text);
    ASSERT_TRUE(settings.ok()) << settings.status().message();
    EXPECT_TRUE(texts.insert(settings.value().text()).second) << settings.value().text();
  }
}

TEST(LevelSettings, name_the_key_that_is_wrong) {
  for (const std::string text : {"redundancy=mirror", "every=0", "every=x", "patience=soon",
                                 "drain_keep=0", "drains=/x", "off=1"}) {
    const auto settings = parse_level_settings(text);
    EXPECT_EQ(settings.status().code(), Code::invalid_argument) << text;
    EXPECT_NE(settings.status().message().find(text.substr(0, text.find('='))), std::string::npos)
        << settings.status().message();
  }
  EXPECT_EQ(parse_level_settings("/no/such/file").status().code(), Code::not_found);
}

TEST(LevelSettings, failure_groups_of_a_file_hold_each_rank_once) {
  const auto groups = read_groups(file_of("0 2  # first rack\n\n3 1\n"), 4);
  ASSERT_TRUE(groups.ok()) << groups.status().message();
  EXPECT_EQ(groups.value(), (std::vector<std::vector<std::uint32_t>>{{0, 2}, {3, 1}}));
  for (const char* wrong : {"0 1\n2\n", "0 1\n1 2\n", "0 1\n", "0 1\n2 x\n", "0 1\n2 7\n"}) {
    EXPECT_EQ(read_groups(file_of(wrong), 3).status().code(), Code::invalid_argument) << wrong;
  }
}

}  // namespace
}  // namespace perdure
