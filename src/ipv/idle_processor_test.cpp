// SPDX-License-Identifier: BSD-3-Clause
//
// Ranks are threads here, each bound to processors of its own or of others.
#include "ipv/idle_processor.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <cstdlib>
#include <utility>
#include <vector>

#include "base/testing/thread_group.hpp"

namespace perdure {
namespace {

// Which of the processors that the test may use.
using Places = std::vector<std::size_t>;

class IdleProcessor : public testing::Test {
 protected:
  IdleProcessor() {
    ::sched_getaffinity(0, sizeof allowed_, &allowed_);
    for (std::size_t at = 0; at < CPU_SETSIZE; ++at) {
      if (CPU_ISSET(at, &allowed_)) all_.push_back(at);
    }
    ::unsetenv("OMP_NUM_THREADS");
  }
  ~IdleProcessor() override {
    ::sched_setaffinity(0, sizeof allowed_, &allowed_);
    ::unsetenv("OMP_NUM_THREADS");
  }

  // The answer of each rank: its node, and the places that it is bound to.
  std::vector<int> answers(const std::vector<std::pair<std::uint32_t, Places>>& ranks) {
    std::vector<std::uint32_t> nodes;
    for (const auto& [node, places] : ranks) nodes.push_back(node);
    ThreadJob job(nodes);
    std::vector<int> idle(ranks.size(), -1);
    job.run([&](ThreadGroup& group) {
      cpu_set_t bound;
      CPU_ZERO(&bound);
      for (const std::size_t place : ranks[group.rank()].second) CPU_SET(all_[place], &bound);
      if (::sched_setaffinity(0, sizeof bound, &bound) != 0) return;
      const auto answer = processor_is_idle(group);
      if (answer.ok()) idle[group.rank()] = answer.value() ? 1 : 0;
    });
    return idle;
  }
  bool has(std::size_t processors) const { return all_.size() >= processors; }

  cpu_set_t allowed_;
  std::vector<std::size_t> all_;
};

using Answers = std::vector<int>;

TEST_F(IdleProcessor, one_processor_is_the_programs) {
  EXPECT_EQ(answers({{0, {0}}}), Answers({0}));
}

TEST_F(IdleProcessor, of_two_one_is_idle_unless_two_compute) {
  if (!has(2)) GTEST_SKIP() << "needs two processors";
  EXPECT_EQ(answers({{0, {0, 1}}}), Answers({1}));
  EXPECT_EQ(answers({{0, {0, 1}}, {0, {0, 1}}}), Answers({0, 0}));
  ::setenv("OMP_NUM_THREADS", "2,4", 1);
  EXPECT_EQ(answers({{0, {0, 1}}}), Answers({0}));
}

TEST_F(IdleProcessor, ranks_of_other_nodes_take_none) {
  if (!has(2)) GTEST_SKIP() << "needs two processors";
  EXPECT_EQ(answers({{0, {0, 1}}, {1, {0, 1}}}), Answers({1, 1}));
  EXPECT_EQ(answers({{0, {0, 1}}, {1, {0, 1}}, {0, {0, 1}}}), Answers({0, 1, 0}));
}

TEST_F(IdleProcessor, bound_ranks_have_what_they_are_bound_to) {
  if (!has(2)) GTEST_SKIP() << "needs two processors";
  EXPECT_EQ(answers({{0, {0}}, {0, {1}}}), Answers({0, 0}));
  EXPECT_EQ(answers({{0, {0}}, {0, {0, 1}}}), Answers({0, 1}));
  if (!has(4)) GTEST_SKIP() << "the rest needs four processors";
  EXPECT_EQ(answers({{0, {0, 1}}, {0, {2, 3}}}), Answers({1, 1}));
  EXPECT_EQ(answers({{0, {0, 1}}, {0, {2, 3}}, {0, {2, 3}}}), Answers({1, 0, 0}));
}

}  // namespace
}  // namespace perdure
