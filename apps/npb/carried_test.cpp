// SPDX-License-Identifier: BSD-3-Clause
//
// Whether the arrays that FT, SP, BT and LU are said to carry are all that their runs go on from,
// and are all needed for it.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "npb/bt/classes.hpp"
#include "npb/bt/solver.hpp"
#include "npb/ft/solver.hpp"
#include "npb/lu/classes.hpp"
#include "npb/lu/solver.hpp"
#include "npb/sp/classes.hpp"
#include "npb/sp/solver.hpp"

namespace npb {
namespace {

constexpr int half = 3;  // iterations

template <typename Solver>
void step(Solver& solver, int from, int to) {
  for (int i = from; i < to; ++i) solver.step();
}

void step(ft::Solver& solver, int from, int to) {
  ft::Progress progress;
  for (int i = from; i < to; ++i) solver.iterate(progress);
}

bool equal(const std::vector<Carried>& a, const std::vector<Carried>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), [](const Carried& x, const Carried& y) {
    return std::equal(x.values, x.values + x.count, y.values);
  });
}

// A second solver goes on from copies of what a first one carries in the middle of its run.
template <typename Solver, typename Problem>
void expect_carried(const Problem& problem) {
  Solver whole(problem), first(problem);
  step(whole, 0, 2 * half);
  step(first, 0, half);
  const std::vector<Carried> source = first.carried();
  for (std::size_t left_out = 0; left_out <= source.size(); ++left_out) {
    Solver second(problem);
    const std::vector<Carried> target = second.carried();
    for (std::size_t m = 0; m < source.size(); ++m) {
      if (m == left_out) continue;
      std::copy(source[m].values, source[m].values + source[m].count, target[m].values);
    }
    step(second, half, 2 * half);
    const bool all = left_out == source.size();
    EXPECT_EQ(equal(second.carried(), whole.carried()), all)
        << (all ? "something else is carried" : source[left_out].name);
  }
}

TEST(Carried, ft_goes_on_from_its_spectrum) {
  expect_carried<ft::Solver>(ft::class_of('S'));
}

TEST(Carried, sp_goes_on_from_u) {
  expect_carried<sp::Solver>(sp::class_of('S'));
}

TEST(Carried, bt_goes_on_from_u) {
  expect_carried<bt::Solver>(bt::class_of('S'));
}

TEST(Carried, lu_goes_on_from_u) {
  expect_carried<lu::Solver>(lu::class_of('S').flow);
}

}  // namespace
}  // namespace npb
