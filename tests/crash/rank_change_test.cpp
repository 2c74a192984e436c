// SPDX-License-Identifier: BSD-3-Clause
//
// Another number of ranks: what comes back is what a gather by hand would give.
// ctest: DEPS rank_job LABELS truth TIMEOUT 300
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "pool/inspect.hpp"
#include "rank_job.hpp"
#include "temporary_directory.hpp"
#include "test_seed.hpp"

namespace perdure {
namespace {

namespace fs = std::filesystem;

std::set<std::string> names_in(const std::string& directory) {
  std::set<std::string> names;
  for (const auto& each : fs::directory_iterator(directory)) names.insert(each.path().filename());
  return names;
}

void expect_right(const JobResult& result) {
  EXPECT_TRUE(result.opened.ok()) << result.opened.message();
  for (const std::string& what : result.wrong) ADD_FAILURE() << what;
}

void expect_pool_of(const std::string& directory, std::uint32_t ranks) {
  std::set<std::string> names{"job"};
  for (std::uint32_t rank = 0; rank < ranks; ++rank) names.insert(rank_file_name(rank));
  EXPECT_EQ(names_in(directory), names);
  const auto report = inspect_pool(directory, {.verify_data = true});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report.value().worst(), Severity::fine);
}

class AnyRanks : public testing::TestWithParam<ArrayMode> {};
INSTANTIATE_TEST_SUITE_P(modes, AnyRanks,
                         testing::Values(ArrayMode::copy, ArrayMode::log, ArrayMode::twin),
                         [](const auto& each) { return std::string(mode_name(each.param)); });

void every_pair(ArrayMode mode, bool one_by_one) {
  const std::uint64_t seed = test_seed();
  for (std::uint32_t old = 1; old <= 8; ++old) {
    for (std::uint32_t ranks = 1; ranks <= 8; ++ranks) {
      SCOPED_TRACE(std::to_string(old) + " to " + std::to_string(ranks));
      const perdure_test::TemporaryDirectory directory;
      JobRun run{directory / "pool", old, seed + 100 * old + ranks, mode};
      run.one_by_one = one_by_one;
      run.keep = static_cast<std::uint32_t>(1 + (seed + ranks) % 3);
      run.checksums = (seed + old + ranks) % 3 != 0;
      run.cells_of_ranks = true;
      expect_right(run_job(run, 3));
      run.before = boxes_of_run(run.seed, old);
      run.ranks = ranks;
      run.late = ranks % 2 == 0;
      if (old != ranks) ++run.seed;
      const JobResult changed = run_job(run, 2);
      expect_right(changed);
      EXPECT_EQ(changed.restored, 3U);
      expect_pool_of(run.directory, ranks);
      run.before.reset();
      const JobResult again = run_job(run, 1);
      expect_right(again);
      EXPECT_EQ(again.restored, 5U);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST_P(AnyRanks, every_number_up_to_8_goes_on_with_what_every_other_one_made) {
  every_pair(GetParam(), false);
}

TEST_P(AnyRanks, so_it_does_where_arrays_are_opened_one_by_one_after_the_restart) {
  every_pair(GetParam(), true);
}

TEST(AnotherNumberOfRanks, a_job_that_only_looks_leaves_the_pool_to_the_old_ranks) {
  const perdure_test::TemporaryDirectory directory;
  JobRun run{directory / "pool", 3, 5};
  expect_right(run_job(run, 2));
  run.ranks = 2;
  const JobResult looked = run_job(run, 0);
  expect_right(looked);
  EXPECT_EQ(looked.restored, 2U);
  expect_pool_of(run.directory, 3);
  run.ranks = 3;
  const JobResult again = run_job(run, 1);
  expect_right(again);
  EXPECT_EQ(again.newest, 3U);
}

TEST(AnotherNumberOfRanks, a_pool_without_a_version_gets_other_ranks_too) {
  const perdure_test::TemporaryDirectory directory;
  JobRun run{directory / "pool", 4, 5};
  expect_right(run_job(run, 0));
  run.ranks = 2;
  const JobResult result = run_job(run, 1);
  expect_right(result);
  EXPECT_EQ(result.newest, 1U);
  expect_pool_of(run.directory, 2);
}

TEST(AnotherNumberOfRanks, the_number_changes_again_and_again_and_back) {
  const perdure_test::TemporaryDirectory directory;
  JobRun run{directory / "pool", 4, test_seed(), ArrayMode::twin};
  std::uint64_t newest = 0;
  for (const std::uint32_t ranks : {4U, 2U, 4U, 3U, 1U, 8U, 4U}) {
    run.ranks = ranks;
    const JobResult result = run_job(run, 2);
    expect_right(result);
    EXPECT_EQ(result.restored, newest);
    newest += 2;
    EXPECT_EQ(result.newest, newest);
    expect_pool_of(run.directory, ranks);
    ++run.seed;
  }
}

}  // namespace
}  // namespace perdure
