// SPDX-License-Identifier: BSD-3-Clause
//
// Every policy against its plain form (plain_policies.hpp), to the last counter, on random traces
// and machines; and what holds for all of them, also for those that are added later.
#include "sim/policy.hpp"

#include <gtest/gtest.h>

#include "sim/testing/plain_policies.hpp"
#include "sim/testing/sim_fixture.hpp"

namespace perdure::sim {
namespace {

using Options = std::map<std::string, std::string>;
using Plain = std::function<Counters(const Records&, const PlainMemory&)>;

Counters counters_of(const Records& records, const std::string& policy, const PlainMemory& memory,
                     const Options& options = {}) {
  Configuration configuration = configuration_of(policy, memory.dram, memory.mram);
  configuration.policy_options = options;
  configuration.first_touch = memory.starts_dirty ? FirstTouch::dirty : FirstTouch::clean;
  const auto bytes = bytes_of(records);
  const auto outcome = run(*reader_of(bytes), configuration);
  EXPECT_TRUE(outcome.ok()) << outcome.status().message();
  return outcome.ok() ? outcome.value().counters : Counters{};
}

void compare(const std::string& policy, const Plain& plain, const Options& options = {}) {
  for (std::uint64_t seed = 1; seed <= 120; ++seed) {
    const auto pages = static_cast<std::uint32_t>(1 + seed % 29);
    const Records records = random_records(seed, 400, pages);
    PlainMemory memory;
    memory.dram = 1 + seed % 11;
    memory.mram = seed % 3 == 0 ? 0 : seed % 7;
    memory.starts_dirty = seed % 2 == 0;
    ASSERT_EQ(text_of(counters_of(records, policy, memory, options)),
              text_of(plain(records, memory)))
        << policy << ", seed " << seed << ", " << memory.dram << " + " << memory.mram << " frames";
  }
}

TEST(Policy, lru_does_what_a_list_does) {
  compare("lru", plain_lru);
}
TEST(Policy, fifo_does_what_a_queue_does) {
  compare("fifo", plain_fifo);
}
TEST(Policy, clock_does_what_a_circle_of_frames_does) {
  compare("clock", plain_clock);
}
TEST(Policy, two_q_does_what_its_paper_says) {
  compare("two_q", plain_two_q);
}
TEST(Policy, arc_does_what_its_paper_says) {
  compare("arc", plain_arc);
}
TEST(Policy, mram_fixed_pins_the_hottest_pages) {
  compare("mram_fixed", plain_mram_fixed);
}

TEST(Policy, low_power_pins_while_the_hit_rate_is_high) {
  for (const double alpha : {0.0, 0.9, 1.5, 3.0}) {
    for (const bool once : {false, true}) {
      for (const bool oldest : {false, true}) {
        const PlainLowPower plain = {alpha, once, oldest};
        compare(
            "low_power",
            [&](const Records& r, const PlainMemory& m) { return plain_low_power(r, m, plain); },
            {{"alpha", std::to_string(alpha)},
             {"unpin", once ? "once" : "each_fault"},
             {"age", oldest ? "oldest" : "kept"}});
      }
    }
  }
}

TEST(Policy, low_power_is_mram_fixed_without_a_threshold_and_lru_below_an_endless_one) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const Records records = random_records(seed, 500, 30);
    const PlainMemory memory = {.dram = 5, .mram = 4};
    EXPECT_EQ(counters_of(records, "low_power", memory, {{"alpha", "0"}}),
              counters_of(records, "mram_fixed", memory));
    EXPECT_EQ(counters_of(records, "low_power", memory, {{"alpha", "100"}, {"warm_up", "100000"}}),
              counters_of(records, "mram_fixed", memory));
    EXPECT_EQ(counters_of(records, "low_power", memory, {{"alpha", "100"}}).faults(),
              counters_of(records, "lru", memory).faults());
  }
}

TEST(Policy, low_power_brings_hot_pages_back_at_once_if_asked) {
  std::uint64_t moved = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const Records records = random_records(seed, 600, 30);
    const Counters counters =
        counters_of(records, "low_power", {.dram = 4, .mram = 5}, {{"repin", "migrate"}});
    moved += counters.sum(&PlaceCounters::moved_in);
    EXPECT_EQ(counters.accesses(), records.size());
  }
  EXPECT_GT(moved, 0U);
}

TEST(Policy, opt_has_the_fewest_faults_of_all) {
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const Records records = random_records(seed, 400, static_cast<std::uint32_t>(2 + seed % 25));
    const PlainMemory memory = {.dram = 1 + seed % 9, .mram = seed % 4};
    const std::uint64_t least = counters_of(records, "opt", memory).faults();
    ASSERT_EQ(least, plain_opt_faults(records, memory.dram + memory.mram)) << "seed " << seed;
    for (const PolicyEntry* entry : policies()) {
      EXPECT_GE(counters_of(records, entry->name, memory).faults(), least) << entry->name;
    }
  }
}

TEST(Policy, opt_drops_what_it_expected_wrongly) {
  const Records records = random_records(3, 30000, 40);
  EXPECT_EQ(counters_of(records, "opt", {.dram = 7, .mram = 2}).faults(),
            plain_opt_faults(records, 9));
}

TEST(Policy, each_has_a_name_a_description_and_options_that_fit_their_own_limits) {
  ASSERT_GE(policies().size(), 8U);
  for (const PolicyEntry* entry : policies()) {
    EXPECT_FALSE(entry->name.empty());
    EXPECT_GE(entry->description.size(), 10U) << entry->name;
    EXPECT_EQ(find_policy(entry->name).take(), entry);
    for (const PolicyOption& option : entry->options) {
      EXPECT_FALSE(option.description.empty()) << option.name;
      EXPECT_TRUE(check_options(*entry, {{option.name, option.default_value}}).ok()) << option.name;
      EXPECT_FALSE(check_options(*entry, {{option.name, "impossible"}}).ok()) << option.name;
      EXPECT_FALSE(check_options(*entry, {{option.name, ""}}).ok()) << option.name;
    }
    EXPECT_FALSE(check_options(*entry, {{"colour", "red"}}).ok());
  }
  EXPECT_NE(find_policy("mru").status().message().find("low_power"), std::string::npos);
}

TEST(Policy, numbers_beyond_their_limits_are_refused) {
  const PolicyEntry* entry = find_policy("low_power").take();
  for (const char* value : {"-1", "101", "nan", "inf", "0.9x"}) {
    EXPECT_EQ(check_options(*entry, {{"alpha", value}}).status().code(), Code::invalid_argument);
  }
}

TEST(Policy, mram_is_filled_first_or_last) {
  const Records records = {{0, 1, 0}, {1, 1, 0}, {2, 1, 0}};
  const PlainMemory memory = {.dram = 3, .mram = 2};
  EXPECT_EQ(counters_of(records, "lru", memory)[Place::mram].reads, 2U);
  EXPECT_EQ(counters_of(records, "lru", memory, {{"fill", "dram"}})[Place::mram].reads, 0U);
}

TEST(Policy, pages_can_be_ranked_by_energy) {
  // Page 0 has more accesses; but 5 writes save 5 · 3.64 nJ, 4 reads save 4 · 4.88.
  const Records records = {{0, 0, 5}, {1, 4, 0}};
  const PlainMemory memory = {.dram = 1, .mram = 1};
  EXPECT_EQ(counters_of(records, "mram_fixed", memory)[Place::mram].writes, 5U);
  EXPECT_EQ(counters_of(records, "mram_fixed", memory, {{"rank", "energy"}})[Place::mram].reads,
            4U);
}

}  // namespace
}  // namespace perdure::sim
