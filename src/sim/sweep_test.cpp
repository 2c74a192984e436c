// SPDX-License-Identifier: BSD-3-Clause
//
// Stack distances against a list, and curves against run(): every capacity of many random traces.
#include "sim/sweep.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

#include "sim/stack_distance.hpp"
#include "sim/testing/sim_fixture.hpp"

namespace perdure::sim {
namespace {

// A list, the page that was used last first.
std::uint32_t depth_in(std::deque<std::uint32_t>& list, std::uint32_t page) {
  const auto found = std::find(list.begin(), list.end(), page);
  const auto depth = static_cast<std::uint32_t>(found - list.begin() + 1);
  const bool cold = found == list.end();
  if (!cold) list.erase(found);
  list.push_front(page);
  return cold ? StackDistance::cold : depth;
}

TEST(StackDistance, is_the_place_in_a_list) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto pages = static_cast<std::uint32_t>(seed % 2 == 0 ? 5 : 3000);
    StackDistance stack;
    std::deque<std::uint32_t> list;
    std::uint32_t known = 0, at = 0;
    for (const trace::Record& record : random_records(seed, 30000, pages)) {
      if (record.page >= known) stack.grow(known = record.page + 1);
      ASSERT_EQ(stack.reference(record.page), depth_in(list, record.page))
          << "seed " << seed << ", reference " << at;
      ++at;
    }
    std::vector<std::uint32_t> visited;
    stack.visit([&](std::uint32_t page, std::uint32_t depth) {
      EXPECT_EQ(list.at(depth - 1), page);
      visited.push_back(page);
    });
    EXPECT_EQ(visited.size(), list.size());
  }
}

// So many pages that the tree has four levels, and ticks run out often; against a Fenwick tree over
// all references that there ever are.
TEST(StackDistance, of_many_pages_is_what_a_tree_over_all_time_counts) {
  constexpr std::uint32_t pages = 110000, references = 600000;
  std::vector<std::uint32_t> sums(references + 1), last(pages);  // by time, from 1
  const auto add = [&](std::uint32_t time, std::uint32_t change) {
    for (; time <= references; time += time & (0U - time)) sums[time] += change;
  };
  std::mt19937_64 random(3);
  StackDistance stack;
  stack.grow(pages);
  std::uint32_t known = 0;
  for (std::uint32_t now = 1; now <= references; ++now) {
    const bool scans = now % 3 == 0;
    const auto page = scans ? now / 3 % pages : static_cast<std::uint32_t>(random() % 500 * 220);
    std::uint32_t depth = StackDistance::cold;
    if (last[page] != 0) {
      std::uint32_t before = 0;
      for (std::uint32_t time = last[page] - 1; time != 0; time &= time - 1) before += sums[time];
      depth = known - before;
      add(last[page], 0U - 1);
    } else {
      ++known;
    }
    ASSERT_EQ(stack.reference(page), depth) << "reference " << now;
    add(last[page] = now, 1);
  }
  EXPECT_EQ(stack.pages(), known);
}

Curves sweep_of(const std::vector<std::byte>& bytes, const SweepConfiguration& configuration) {
  auto curves = sweep(*reader_of(bytes), configuration);
  EXPECT_TRUE(curves.ok()) << curves.status().message();
  return curves.take();
}

SweepConfiguration sweep_configuration(std::vector<std::uint64_t> mram_frames) {
  SweepConfiguration configuration;
  configuration.devices = devices_of_preset("hosogaya2008").take();
  configuration.mram_bytes.clear();
  for (const std::uint64_t frames : mram_frames) {
    configuration.mram_bytes.push_back(frames * test_page);
  }
  return configuration;
}

// Stopped at the same record, both have seen the same accesses.
TEST(Sweep, that_is_stopped_gives_what_a_run_gives_that_is_stopped) {
  const auto bytes = bytes_of(random_records(5, 200000, 3000));
  const auto stop = [](const Progress& progress) { return progress.records < 30000; };
  SweepConfiguration configuration = sweep_configuration({0, 1500});
  configuration.progress = stop;
  const Curves curves = sweep_of(bytes, configuration);
  EXPECT_TRUE(curves.partial);
  EXPECT_LT(curves.accesses, curves.accesses_total);
  EXPECT_EQ(curves.compute_ns, 0);
  for (const Curve& curve : curves.curves) {
    for (const std::uint64_t frames : {1U, 100U, 1500U, 4000U}) {
      Configuration machine = configuration_of(curve.mram_frames != 0 ? "mram_fixed" : "lru",
                                               frames, curve.mram_frames);
      machine.progress = stop;
      const Outcome outcome = run(*reader_of(bytes), machine).take();
      EXPECT_EQ(outcome.counters.accesses(), curves.accesses);
      EXPECT_EQ(text_of(curve.counters(frames)), text_of(outcome.counters)) << frames;
    }
  }
}

TEST(Sweep, gives_every_capacity_what_a_run_gives) {
  std::uint64_t compared = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    const auto pages = static_cast<std::uint32_t>(2 + seed % 23);
    const auto bytes = bytes_of(random_records(seed, 400, pages));
    SweepConfiguration configuration = sweep_configuration({0, 1, seed % 6 + 2});
    configuration.first_touch = seed % 2 == 0 ? FirstTouch::dirty : FirstTouch::clean;
    configuration.rank = seed % 3 == 0 ? "energy" : "count";
    for (const Curve& curve : sweep_of(bytes, configuration).curves) {
      for (std::uint64_t frames = 1; frames <= pages + 2; ++frames) {
        const bool fixed = curve.mram_frames != 0;
        Configuration machine =
            configuration_of(fixed ? "mram_fixed" : "lru", frames, curve.mram_frames);
        if (fixed) machine.policy_options = {{"rank", configuration.rank}};
        machine.first_touch = configuration.first_touch;
        const Outcome outcome = run(*reader_of(bytes), machine).take();
        ASSERT_EQ(text_of(curve.counters(frames)), text_of(outcome.counters))
            << "seed " << seed << ", " << frames << " + " << curve.mram_frames << " frames";
        EXPECT_EQ(curve.pages, outcome.pages);
        ++compared;
      }
    }
  }
  std::printf("%ju capacities compared\n", static_cast<std::uintmax_t>(compared));
  EXPECT_GT(compared, 2000U);
}

TEST(Sweep, is_the_same_on_a_reduced_trace) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto records = random_records(seed, 3000, 60);
    const auto configuration = sweep_configuration({0, 5});
    const auto whole = sweep_of(bytes_of(records), configuration);
    const auto reduced = sweep_of(bytes_of(records, 7), configuration);
    for (std::size_t i = 0; i < 2; ++i) {
      EXPECT_EQ(reduced.curves[i].floor_pages, 7U);
      for (std::uint64_t frames = 7; frames <= 61; ++frames) {
        ASSERT_EQ(text_of(whole.curves[i].counters(frames)),
                  text_of(reduced.curves[i].counters(frames)))
            << "seed " << seed << ", " << frames << " frames";
      }
    }
  }
}

// Not only where it says so, but exactly there: elsewhere the policy did leave its pinned mode, or
// the trace was such that it made no difference.
TEST(Sweep, knows_where_the_low_power_policy_equals_mram_fixed) {
  std::uint64_t equal = 0, different = 0, missed = 0;
  for (std::uint64_t seed = 1; seed <= 80; ++seed) {
    const auto bytes = bytes_of(random_records(seed, 600, 25));
    const Curve curve = sweep_of(bytes, sweep_configuration({1 + seed % 7})).curves[0];
    for (std::uint64_t frames = 1; frames <= 26; ++frames) {
      const Configuration machine = configuration_of("low_power", frames, curve.mram_frames);
      const Counters counters = run(*reader_of(bytes), machine).take().counters;
      const bool same = counters == curve.counters(frames);
      if (curve.low_power_equals(frames, 0.9)) {
        ASSERT_TRUE(same) << "seed " << seed << ", " << frames << " frames";
        ++equal;
      } else {
        ++(same ? missed : different);
      }
    }
  }
  EXPECT_GT(equal, 300U);
  EXPECT_GT(different, 100U);
  EXPECT_LT(missed, different / 2);
}

TEST(Sweep, counts_large_traces_like_a_run) {
  const auto bytes = bytes_of(random_records(77, 300000, 3000), 16);
  const Curve curve = sweep_of(bytes, sweep_configuration({0})).curves[0];
  for (const std::uint64_t frames : {16U, 100U, 1000U, 2500U, 2999U, 3000U, 5000U}) {
    const Outcome outcome = run(*reader_of(bytes), configuration_of("lru", frames, 0)).take();
    EXPECT_EQ(text_of(curve.counters(frames)), text_of(outcome.counters)) << frames;
  }
}

TEST(Sweep, refuses_what_can_not_be) {
  const auto bytes = bytes_of(random_records(1, 100, 10));
  auto wrong = sweep_configuration({1});
  wrong.rank = "colour";
  EXPECT_EQ(sweep(*reader_of(bytes), wrong).status().code(), Code::invalid_argument);
  wrong = sweep_configuration({});
  EXPECT_EQ(sweep(*reader_of(bytes), wrong).status().code(), Code::invalid_argument);
  wrong = sweep_configuration({1});
  wrong.mram_bytes[0] += 1;
  EXPECT_EQ(sweep(*reader_of(bytes), wrong).status().code(), Code::invalid_argument);
  EXPECT_EQ(sweep(*reader_of(bytes, false), sweep_configuration({1})).status().code(),
            Code::wrong_state);
  EXPECT_TRUE(sweep(*reader_of(bytes, false), sweep_configuration({0})).ok());
  const auto empty = bytes_of({});
  EXPECT_EQ(sweep(*reader_of(empty), sweep_configuration({0})).status().code(),
            Code::invalid_argument);
}

}  // namespace
}  // namespace perdure::sim
