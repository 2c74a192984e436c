// SPDX-License-Identifier: BSD-3-Clause
//
// Scripts of commits, restores, deletions and changing arrays: from every crash image of one rank
// and of two, the newest version and all that can be restored are what the ledger says.
// ctest: TIMEOUT 300 LONG 1800 COST 40
#include <gtest/gtest.h>

#include <array>
#include <cctype>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include "script.hpp"
#include "slow_tests.hpp"

namespace perdure {
namespace {

class ScriptSweep : public testing::TestWithParam<ScriptOptions> {};

std::string case_name(const testing::TestParamInfo<ScriptOptions>& info) {
  std::string name;
  for (const char c : info.param.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) name += c;
    if (c == ' ') name += '_';
  }
  return name;
}

INSTANTIATE_TEST_SUITE_P(All, ScriptSweep, testing::ValuesIn(all_scripts(test_seed())), case_name);

class ScriptOfTwoRanks : public testing::TestWithParam<ScriptOptions> {};

// Two ranks go through each fourth script, which is of another kind and mode than the one before.
std::vector<ScriptOptions> some_scripts() {
  const std::vector<ScriptOptions> all = all_scripts(test_seed());
  const Cases cases = some_cases(0, 4);
  std::vector<ScriptOptions> some;
  for (std::uint64_t i = cases.first; i < all.size(); i += cases.step) some.push_back(all[i]);
  return some;
}

INSTANTIATE_TEST_SUITE_P(Some, ScriptOfTwoRanks, testing::ValuesIn(some_scripts()), case_name);

void expect_right(const SweepResult& result, std::uint64_t images_min) {
  std::cout << result.fences << " moments, " << result.images << " images (" << result.sampled
            << " moments sampled), " << result.wrong << " wrong\n";
  EXPECT_EQ(result.wrong, 0U) << result.first_wrong;
  EXPECT_GE(result.images, images_min);
}

TEST_P(ScriptSweep, one_rank_gets_back_what_the_ledger_says) {
  constexpr std::array models{AtomicityModel::prefix, AtomicityModel::words, AtomicityModel::lines};
  // One of the three, another one with each seed and script.
  const Cases cases = some_cases(std::hash<std::string>{}(GetParam().name) % models.size(), 3);
  for (std::uint64_t i = 0; i < models.size(); i += cases.step) {
    const AtomicityModel model = models[(cases.first + i) % models.size()];
    ScriptOptions options = GetParam();
    SCOPED_TRACE(text_of(options.lines));
    options.model = model;
    options.images_per_moment = options.others == 0 ? 100 : 40;  // a deep tree opens slowly
    const std::uint64_t part = slow_tests() ? 1 : 4;
    options.images_per_moment /= part;
    expect_right(sweep_script(options), 300 / part);
  }
}

TEST_P(ScriptOfTwoRanks, two_ranks_get_back_what_both_ledgers_say) {
  ScriptOptions options = GetParam();
  SCOPED_TRACE(text_of(options.lines));
  options.images_per_moment = 8;
  expect_right(sweep_script_of_two_ranks(options), 400);
}

}  // namespace
}  // namespace perdure
