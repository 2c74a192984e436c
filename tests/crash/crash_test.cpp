// SPDX-License-Identifier: BSD-3-Clause
//
// Every crash image of small runs, in each mode and atomicity model, recovers to the right version.
// ctest: TIMEOUT 300
#include <gtest/gtest.h>

#include <iostream>
#include <string>
#include <tuple>

#include "sweep.hpp"

namespace perdure {
namespace {

std::string text(const SweepResult& result) {
  return std::to_string(result.fences) + " fences, " + std::to_string(result.images) + " images (" +
         std::to_string(result.sampled) + " fences sampled), " + std::to_string(result.wrong) +
         " wrong";
}

void expect_right(const SweepResult& result, std::uint64_t images_min) {
  std::cout << text(result) << "\n";
  EXPECT_EQ(result.wrong, 0U) << result.first_wrong;
  EXPECT_GE(result.images, images_min);
}

using Case = std::tuple<ArrayMode, AtomicityModel>;
class CrashSweep : public testing::TestWithParam<Case> {
 protected:
  static SweepOptions of_case() {
    SweepOptions options;
    std::tie(options.mode, options.model) = GetParam();
    return options;
  }
};

std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(mode_name(std::get<0>(info.param))) + "_" +
         atomicity_name(std::get<1>(info.param));
}

INSTANTIATE_TEST_SUITE_P(
    EveryModeAndModel, CrashSweep,
    testing::Combine(testing::Values(ArrayMode::copy, ArrayMode::twin, ArrayMode::log),
                     testing::Values(AtomicityModel::prefix, AtomicityModel::words,
                                     AtomicityModel::lines)),
    case_name);

TEST_P(CrashSweep, one_rank_gets_back_one_whole_version_from_every_image) {
  SweepOptions options = of_case();
  options.images_per_fence = 400;
  expect_right(sweep_one_rank(options), 1000);
}

TEST_P(CrashSweep, one_rank_gets_back_one_whole_version_from_every_image_of_wide_lines) {
  SweepOptions options = of_case();
  options.line_bytes = 256;
  options.images_per_fence = 400;
  options.checksums = options.mode != ArrayMode::twin;
  expect_right(sweep_one_rank(options), 150);
}

TEST_P(CrashSweep, one_rank_with_asynchronous_commit) {
  SweepOptions options = of_case();
  options.images_per_fence = 100;
  options.asynchronous = true;
  expect_right(sweep_one_rank(options), 400);
}

TEST_P(CrashSweep, one_rank_with_its_catalogue_in_a_tree) {
  SweepOptions options = of_case();
  options.images_per_fence = 400;
  options.slot_bytes = 256;
  expect_right(sweep_one_rank(options), 1000);
}

TEST_P(CrashSweep, two_ranks_with_catalogues_in_trees) {
  SweepOptions options = of_case();
  options.versions = 3;
  options.images_per_fence = 24;
  options.slot_bytes = 256;
  expect_right(sweep_two_ranks(options), 300);
  options.images_per_fence = 6;
  options.versions = SweepOptions{}.versions;
  expect_right(sweep_two_ranks_after_a_crash(options), 200);
  expect_right(sweep_two_ranks_with_a_failure(options), 200);
}

TEST_P(CrashSweep, two_ranks_get_back_the_same_version_from_every_cut) {
  SweepOptions options = of_case();
  options.versions = 3;
  options.images_per_fence = 24;
  expect_right(sweep_two_ranks(options), 300);
}

TEST_P(CrashSweep, two_ranks_that_go_on_after_a_crash_never_meet_the_abandoned_version) {
  SweepOptions options = of_case();
  options.images_per_fence = 6;
  expect_right(sweep_two_ranks_after_a_crash(options), 200);
}

TEST_P(CrashSweep, two_ranks_that_try_again_never_meet_the_failed_attempt) {
  SweepOptions options = of_case();
  options.images_per_fence = 6;
  expect_right(sweep_two_ranks_with_a_failure(options), 200);
}

TEST_P(CrashSweep, two_ranks_that_try_again_never_meet_an_attempt_that_met_another_call) {
  SweepOptions options = of_case();
  options.images_per_fence = 6;
  expect_right(sweep_two_ranks_with_a_mismatch(options), 150);
}

TEST_P(CrashSweep, two_ranks_with_other_arrays_each_get_back_the_same_version_from_every_cut) {
  SweepOptions options = of_case();
  options.versions = 3;
  options.images_per_fence = 12;
  options.rank_local = true;
  expect_right(sweep_two_ranks(options), 300);
  options.images_per_fence = 6;
  expect_right(sweep_two_ranks_with_a_failure(options), 200);
  expect_right(sweep_two_ranks_with_a_mismatch(options), 150);
}

}  // namespace
}  // namespace perdure
