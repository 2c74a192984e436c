// SPDX-License-Identifier: BSD-3-Clause
//
// Runs: what they refuse, what they warn of, and what reduction and pipes leave the same.
#include "sim/run.hpp"

#include <gtest/gtest.h>

#include "sim/testing/sim_fixture.hpp"

namespace perdure::sim {
namespace {

Status status_of(const Configuration& configuration, std::uint32_t floor_pages = 0,
                 bool seekable = true) {
  const auto bytes = bytes_of(random_records(1, 300, 20), floor_pages);
  return run(*reader_of(bytes, seekable), configuration).status();
}

void expect_refused(const Status& status, const std::string& words) {
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find(words), std::string::npos) << status.message();
}

TEST(Run, refuses_capacities_that_can_not_be) {
  expect_refused(status_of(configuration_of("lru", 0, 0)), "without DRAM and MRAM");
  Configuration half = configuration_of("lru", 1, 0);
  half.dram_bytes += 100;
  expect_refused(status_of(half), "not a number of pages");
  Configuration huge = configuration_of("lru", 1, std::uint64_t{1} << 33U);
  expect_refused(status_of(huge), "beyond");
  expect_refused(status_of(configuration_of("mram_fixed", 0, 5)), "15 pages are not pinned");
  EXPECT_TRUE(status_of(configuration_of("mram_fixed", 0, 20)).ok()) << "all pages are pinned";
}

TEST(Run, refuses_fewer_pages_than_the_reduction_is_exact_for) {
  expect_refused(status_of(configuration_of("lru", 7, 0), 8), "from which the reduced trace");
  EXPECT_TRUE(status_of(configuration_of("lru", 4, 4), 8).ok());
  expect_refused(status_of(configuration_of("mram_fixed", 7, 4), 8), "are not pinned");
}

TEST(Run, refuses_names_and_options_that_it_does_not_know) {
  EXPECT_EQ(status_of(configuration_of("mru", 5, 0)).code(), Code::not_found);
  Configuration wrong = configuration_of("lru", 5, 0);
  wrong.policy_options = {{"fill", "tape"}};
  EXPECT_EQ(status_of(wrong).code(), Code::invalid_argument);
}

TEST(Run, refuses_a_pipe_where_the_trace_is_needed_twice) {
  for (const char* policy : {"mram_fixed", "low_power", "opt"}) {
    EXPECT_EQ(status_of(configuration_of(policy, 5, 3), 0, false).code(), Code::wrong_state);
  }
  EXPECT_TRUE(status_of(configuration_of("lru", 5, 3), 0, false).ok());
}

TEST(Run, refuses_a_trace_without_accesses_and_a_damaged_one) {
  auto bytes = bytes_of({});
  expect_refused(run(*reader_of(bytes), configuration_of("lru", 5, 0)).status(), "no accesses");
  bytes = bytes_of(random_records(1, 300, 20));
  bytes.resize(bytes.size() - 30);
  EXPECT_EQ(run(*reader_of(bytes, false), configuration_of("lru", 5, 0)).status().code(),
            Code::damaged);
}

TEST(Run, is_the_same_from_a_pipe) {
  const auto bytes = bytes_of(random_records(4, 5000, 60));
  const Outcome file = run(*reader_of(bytes), configuration_of("arc", 9, 3)).take();
  const Outcome pipe = run(*reader_of(bytes, false), configuration_of("arc", 9, 3)).take();
  EXPECT_EQ(file.counters, pipe.counters);
  EXPECT_EQ(file.hits + file.counters.faults(), file.records);
  EXPECT_EQ(file.pages, 60U);
}

TEST(Run, is_the_same_on_a_reduced_trace_where_it_says_so) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const auto records = random_records(seed, 2000, 40);
    const auto whole = bytes_of(records), reduced = bytes_of(records, 6);
    for (const char* policy : {"lru", "mram_fixed"}) {
      const Configuration machine = configuration_of(policy, 6 + seed % 9, seed % 5);
      const Outcome one = run(*reader_of(whole), machine).take();
      const Outcome other = run(*reader_of(reduced), machine).take();
      ASSERT_EQ(text_of(one.counters), text_of(other.counters)) << policy << ", seed " << seed;
      EXPECT_EQ(one.cost.energy_nj, other.cost.energy_nj);
    }
    const Configuration machine = configuration_of("opt", 6 + seed % 9, 0);
    EXPECT_EQ(run(*reader_of(whole), machine).take().counters.faults(),
              run(*reader_of(reduced), machine).take().counters.faults());
  }
}

TEST(Run, warns_of_what_makes_its_figures_weaker) {
  const auto warnings_of = [](const std::string& policy, std::uint32_t floor,
                              std::uint64_t compute) {
    const auto bytes = bytes_of(random_records(1, 300, 20), floor, {0, 0, compute});
    std::string all;
    for (const auto& text :
         run(*reader_of(bytes), configuration_of(policy, 9, 0)).take().warnings) {
      all += text + "\n";
    }
    return all;
  };
  EXPECT_NE(warnings_of("arc", 4, 7).find("reduced"), std::string::npos);
  EXPECT_EQ(warnings_of("lru", 4, 7).find("reduced"), std::string::npos);
  EXPECT_NE(warnings_of("lru", 4, 0).find("computation time"), std::string::npos);
  EXPECT_EQ(warnings_of("lru", 4, 7).find("computation time"), std::string::npos);
  EXPECT_NE(warnings_of("lru", 4, 7).find("assemblies are mixed"), std::string::npos);
}

TEST(Run, ends_early_when_asked_and_says_so) {
  const auto bytes = bytes_of(random_records(2, 200000, 200));
  Configuration machine = configuration_of("lru", 20, 0);
  std::uint64_t total = 0;
  machine.progress = [&](const Progress& progress) {
    total = progress.accesses_total;
    return progress.records < 50000;
  };
  const Outcome outcome = run(*reader_of(bytes), machine).take();
  EXPECT_TRUE(outcome.partial);
  EXPECT_LT(outcome.records, 100000U);
  EXPECT_EQ(outcome.counters.accesses(), outcome.records);
  EXPECT_EQ(total, 200000U);
}

TEST(Run, samples_the_hit_rate_of_mram_evenly) {
  std::vector<trace::Record> records;
  for (std::uint32_t i = 0; i < 40000000 / 512; ++i) records.push_back({i % 2, 1, 0});
  const auto bytes = bytes_of(records);
  const Outcome outcome = run(*reader_of(bytes), configuration_of("mram_fixed", 1, 1)).take();
  ASSERT_FALSE(outcome.mram_hit_rate.empty());
  const HitRateSample last = outcome.mram_hit_rate.back();
  EXPECT_EQ(last.accesses, records.size());
  EXPECT_NEAR(static_cast<double>(last.mram_accesses) / static_cast<double>(last.accesses), 0.5,
              0.01);
}

TEST(Run, counts_only_the_region_that_is_read) {
  std::vector<std::byte> bytes;
  trace::Header header;
  header.floor_pages = 2;
  auto writer = trace::Writer::create(trace::memory_sink(bytes), header).take();
  for (std::uint64_t page = 0; page < 50; ++page) writer->append(page, 0, 1);
  writer->begin_region("solve");
  for (std::uint64_t i = 0; i < 40; ++i) writer->append(10 + i % 4, 1, 0);
  writer->end_region();
  ASSERT_TRUE(writer->finish({}).ok());
  auto reader = reader_of(bytes);
  ASSERT_TRUE(reader->only_region("solve").ok());
  const Outcome outcome = run(*reader, configuration_of("mram_fixed", 2, 3)).take();
  EXPECT_EQ(outcome.pages, 4U);
  EXPECT_EQ(outcome.counters.accesses(), 40U);
  EXPECT_EQ(outcome.counters[Place::mram].reads, 30U);
}

}  // namespace
}  // namespace perdure::sim
