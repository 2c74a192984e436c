// SPDX-License-Identifier: BSD-3-Clause
#include "rma/window_options.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace perdure {
namespace {

const KeyValues minimal = {{"perdure_name", "ranks"}, {"perdure_pool", "/pmem/p"}};

KeyValues with(const std::string& key, const std::string& value) {
  KeyValues keys = minimal;
  keys[key] = value;
  return keys;
}

TEST(WindowOptions, info_without_our_keys_asks_for_nothing) {
  const auto parsed = parse_window_info({{"no_locks", "true"}}, "/pmem/p");
  ASSERT_TRUE(parsed.ok());
  EXPECT_FALSE(parsed.value().has_value());
}

TEST(WindowOptions, a_name_and_a_pool_give_the_defaults) {
  const auto parsed = parse_window_info(minimal, "");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  const WindowOptions& options = *parsed.value();
  EXPECT_EQ(options.name, "ranks");
  EXPECT_EQ(options.pool.path, "/pmem/p");
  EXPECT_EQ(options.mode, WindowMode::copy);
  EXPECT_EQ(options.commit.of(Trigger::fence), 0U);
  EXPECT_EQ(options.pool.restore, RestoreChoice::newest);
  EXPECT_FALSE(options.delete_at_free);
}

TEST(WindowOptions, the_pool_of_the_environment_is_the_default) {
  const auto parsed = parse_window_info({{"perdure_name", "a"}}, "/pmem/env");
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed.value()->pool.path, "/pmem/env");
  EXPECT_FALSE(parse_window_info({{"perdure_name", "a"}}, "").ok());
}

TEST(WindowOptions, another_number_of_ranks_is_told_by_rows_or_a_box) {
  const auto rows = parse_window_info(with("perdure_ranks", "rows"), "");
  ASSERT_TRUE(rows.ok()) << rows.status().message();
  EXPECT_EQ(rows.value()->ranks, RankRule::rows);
  EXPECT_TRUE(rows.value()->pool.any_ranks);
  const auto box = parse_window_info(with("perdure_box", "16x64 of 64x64 at 48,0"), "");
  ASSERT_TRUE(box.ok()) << box.status().message();
  EXPECT_EQ(box.value()->box->own, (std::vector<std::uint64_t>{16, 64}));
  EXPECT_EQ(box.value()->box->global, (std::vector<std::uint64_t>{64, 64}));
  EXPECT_EQ(box.value()->box->first, (std::vector<std::uint64_t>{48, 0}));
  EXPECT_TRUE(box.value()->pool.any_ranks);
  EXPECT_FALSE(parse_window_info(minimal, "").value()->pool.any_ranks);
  KeyValues both = with("perdure_box", "16x64 of 64x64 at 48,0");
  both["perdure_ranks"] = "rows";
  EXPECT_FALSE(parse_window_info(both, "").ok());
  const auto named = parse_window_environment("pool=/pmem/p;ranks=rows");
  ASSERT_TRUE(named.ok()) << named.status().message();
  EXPECT_EQ(named.value().ranks, RankRule::rows);
  EXPECT_FALSE(parse_window_environment("pool=/pmem/p;box=1 of 1 at 0").ok());
}

TEST(WindowOptions, every_malformed_value_is_an_error_that_names_it) {
  const std::vector<std::pair<std::string, std::string>> wrong = {
      {"perdure_mode", "fast"},
      {"perdure_commit", "fence/0"},
      {"perdure_commit", "fences"},
      {"perdure_keep", "0"},
      {"perdure_keep", "64"},
      {"perdure_keep", "3x"},
      {"perdure_async", "yes"},
      {"perdure_async", "TRUE"},
      {"perdure_checksum", "1"},
      {"perdure_restore", "-1"},
      {"perdure_restore", "0"},
      {"perdure_free", "no"},
      {"perdure_ranks", "columns"},
      {"perdure_ranks", "by hand"},
      {"perdure_box", "16x64"},
      {"perdure_box", "16x64 of 64x64 at 49,0"},
      {"perdure_box", "16x64 of 64 at 0,0"},
      {"perdure_box", "16x64 of 64x64 at 0"},
      {"perdure_box", "16x of 64x64 at 0,0"},
      {"perdure_box", "1x1x1x1x1x1x1x1 of 1x1x1x1x1x1x1x1 at 0,0,0,0,0,0,0,0"},
      {"perdure_threads", "0"},
      {"perdure_delay", ""},
      {"perdure_job", ""},
      {"perdure_versions", "3"},
      {"perdure_commit", ""},
      {"perdure_commit", "fence,"},
      {"perdure_commit", "fence,fence"}};
  for (const auto& [key, value] : wrong) {
    const auto parsed = parse_window_info(with(key, value), "");
    ASSERT_FALSE(parsed.ok()) << key << "=" << value;
    EXPECT_EQ(parsed.status().code(), Code::invalid_argument);
    EXPECT_NE(parsed.status().message().find(key), std::string::npos) << parsed.status().message();
  }
}

TEST(WindowOptions, keys_without_a_name_are_an_error) {
  const auto parsed = parse_window_info({{"perdure_mode", "copy"}}, "/pmem/p");
  ASSERT_FALSE(parsed.ok());
  EXPECT_NE(parsed.status().message().find("perdure_name"), std::string::npos);
}

TEST(WindowOptions, a_commit_rule_lists_calls_and_how_often) {
  const auto rule = parse_commit_rule("fence/10,unlock_all");
  ASSERT_TRUE(rule.ok()) << rule.status().message();
  EXPECT_EQ(rule.value().of(Trigger::fence), 10U);
  EXPECT_EQ(rule.value().of(Trigger::unlock_all), 1U);
  EXPECT_EQ(rule.value().of(Trigger::unlock), 0U);
}

TEST(WindowOptions, twin_copies_nothing_so_it_cannot_be_asynchronous) {
  KeyValues keys = with("perdure_mode", "twin");
  keys["perdure_async"] = "true";
  EXPECT_FALSE(parse_window_info(keys, "").ok());
}

TEST(WindowOptions, the_environment_uses_the_same_words) {
  const auto parsed = parse_window_environment("pool=/pmem/x;mode=log;commit=fence/2,wait");
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed.value().mode, WindowMode::log);
  EXPECT_EQ(parsed.value().commit.of(Trigger::wait), 1U);
  EXPECT_TRUE(parsed.value().delete_at_free);
  EXPECT_TRUE(parse_window_environment("pool=/p;mode=twin").ok());
  EXPECT_TRUE(parse_window_environment("pool=/p;mode=twin;commit=fence;halves=asked").ok());
}

TEST(WindowOptions, the_environment_refuses_what_a_program_must_know_of) {
  for (const char* text : {"mode=copy", "pool=/p;mode=twin;commit=wait", "pool=/p;name=a",
                           "pool=/p;fence", "pool=/p;commits=fence"}) {
    const auto parsed = parse_window_environment(text);
    ASSERT_FALSE(parsed.ok()) << text;
    EXPECT_NE(parsed.status().message().find(text[0] == 'm' ? "perdure_pool" : "PERDURE_WINDOWS"),
              std::string::npos)
        << parsed.status().message();
  }
}

}  // namespace
}  // namespace perdure
