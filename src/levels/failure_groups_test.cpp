// SPDX-License-Identifier: BSD-3-Clause
//
// Schemes and failure groups: who guards whom survives the loss of any node, or is refused.
// ctest: NAME levels_groups_test
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "levels/redundancy.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

using Nodes = std::vector<std::uint32_t>;

std::string text_of(const Nodes& nodes, const Scheme& scheme) {
  std::string text = scheme.text() + ", ranks on nodes";
  for (const std::uint32_t node : nodes) text += " " + std::to_string(node);
  return text;
}

std::size_t ranks_per_node_max(const Nodes& nodes) {
  std::map<std::uint32_t, std::size_t> counts;
  std::size_t most = 0;
  for (const std::uint32_t node : nodes) most = std::max(most, ++counts[node]);
  return most;
}

// A rank of the fullest node shares a group with none of that node, so each of its groups needs
// `rows` others of their own.
bool possible(const Nodes& nodes, const Scheme& scheme) {
  return !nodes.empty() && ranks_per_node_max(nodes) * (scheme.rows + 1) <= nodes.size();
}

void check(const Nodes& nodes, const Scheme& scheme) {
  const std::string text = text_of(nodes, scheme);
  const auto groups = failure_groups(nodes, scheme);
  ASSERT_EQ(groups.ok(), possible(nodes, scheme)) << text;
  if (!groups.ok()) {
    ASSERT_EQ(groups.status().code(), Code::unsupported) << text;
    return;
  }
  std::vector<std::uint32_t> seen;
  for (const auto& group : groups.value()) {
    ASSERT_GT(group.size(), scheme.rows) << text;
    ASSERT_LE(group.size(), group_size_max) << text;
    ASSERT_TRUE(std::is_sorted(group.begin(), group.end())) << text;
    std::set<std::uint32_t> on;
    for (const std::uint32_t rank : group) on.insert(nodes[rank]);
    ASSERT_EQ(on.size(), group.size()) << text;
    seen.insert(seen.end(), group.begin(), group.end());
    const bool fits = nodes.size() % scheme.group_size == 0 &&
                      ranks_per_node_max(nodes) <= nodes.size() / scheme.group_size;
    ASSERT_TRUE(!fits || group.size() == scheme.group_size) << text;
  }
  std::sort(seen.begin(), seen.end());
  ASSERT_EQ(seen.size(), nodes.size()) << text;
  for (std::uint32_t rank = 0; rank < seen.size(); ++rank) ASSERT_EQ(seen[rank], rank) << text;
}

TEST(FailureGroups, of_every_small_job_are_on_different_nodes) {
  for (std::uint32_t ranks = 0; ranks <= 7; ++ranks) {
    Nodes nodes(ranks, 0);
    for (;;) {
      for (std::uint32_t size = 2; size <= 5; ++size) {
        for (std::uint32_t losses = 1; losses < size; ++losses) check(nodes, {size, losses});
      }
      std::size_t digit = 0;  // every placement on up to four nodes
      while (digit < ranks && ++nodes[digit] == 4) nodes[digit++] = 0;
      if (digit == ranks) break;
    }
  }
}

TEST(FailureGroups, of_random_jobs_are_on_different_nodes) {
  std::mt19937_64 random(test_seed());
  for (int job = 0; job < 3000; ++job) {
    Nodes nodes(1 + random() % 300);
    const std::uint64_t node_count = 1 + random() % nodes.size();
    for (std::uint32_t& node : nodes) node = static_cast<std::uint32_t>(random() % node_count);
    const auto size = static_cast<std::uint32_t>(2 + random() % 15);
    check(nodes, {size, static_cast<std::uint32_t>(1 + random() % (size - 1))});
  }
}

TEST(FailureGroups, a_job_on_one_node_is_refused_with_what_it_lacks) {
  const auto groups = failure_groups(Nodes{0, 0, 0, 1}, {2, 1});
  EXPECT_EQ(groups.status().code(), Code::unsupported);
  EXPECT_NE(groups.status().message().find("partner needs 2 nodes or more"), std::string::npos);
  EXPECT_NE(groups.status().message().find("4 ranks on 2 nodes, 3 of them on one"),
            std::string::npos);
}

TEST(FailureGroups, three_ranks_of_a_partner_scheme_guard_each_other) {
  const auto groups = failure_groups(Nodes{0, 1, 2}, {2, 1});
  ASSERT_TRUE(groups.ok()) << groups.status().message();
  EXPECT_EQ(groups.value(), (std::vector<std::vector<std::uint32_t>>{{0, 1, 2}}));
}

TEST(Scheme, is_read_as_it_is_written) {
  for (std::uint32_t size = 2; size <= group_size_max; ++size) {
    for (std::uint32_t losses = 1; losses < size; ++losses) {
      const Scheme scheme{size, losses};
      const auto read = parse_scheme(scheme.text());
      ASSERT_TRUE(read.ok()) << scheme.text();
      EXPECT_TRUE(read.value() == scheme) << scheme.text();
    }
  }
  EXPECT_EQ(Scheme{}.text(), "partner");
  EXPECT_EQ(parse_scheme("xor").value().text(), "xor:8");
  EXPECT_EQ(parse_scheme("rs:4+2").value().group_size, 6U);
  EXPECT_EQ(parse_scheme("rs:7+1").value().text(), "xor:8");
}

TEST(Scheme, that_is_none_is_refused_with_what_is_expected) {
  for (const char* const text :
       {"", "Partner", "partner:2", "xor:", "xor:1", "xor:33", "xor:8x", "xor:-2", "xor: 8", "rs:4",
        "rs:+2", "rs:4+", "rs:0+2", "rs:4+0", "rs:31+2", "rs:4+2+1", "rs:4294967297+1", "4+2"}) {
    const auto read = parse_scheme(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_EQ(read.status().code(), Code::invalid_argument);
    EXPECT_NE(read.status().message().find("partner, xor, xor:G"), std::string::npos);
  }
}

}  // namespace
}  // namespace perdure
