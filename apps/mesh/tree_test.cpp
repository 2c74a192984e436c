// SPDX-License-Identifier: BSD-3-Clause
#include "tree.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>

#include "test_seed.hpp"

namespace mesh {
namespace {

// In quarters of quarters of … the smallest block.
std::uint64_t area_of(const Tree& tree) {
  std::uint64_t area = 0;
  for (const Key& key : tree.keys()) area += std::uint64_t{1} << 2 * (levels_max - key.level);
  return area;
}

void check(const Tree& tree) {
  ASSERT_EQ(area_of(tree), area_of(Tree::of_roots()));
  ASSERT_TRUE(std::ranges::is_sorted(tree.keys(), std::ranges::less_equal{}, &Key::place));
  for (std::size_t i = 0; i < tree.size(); ++i) {
    const Key& key = tree.keys()[i];
    ASSERT_EQ(tree.find(key), i);
    for (const Side side : sides) {
      for (const std::size_t at : tree.neighbours(key, side)) {
        ASSERT_NE(at, Tree::none) << "a side of level " << key.level << " touches nothing";
        ASSERT_LE(std::abs(tree.keys()[at].level - key.level), 1);
      }
    }
  }
}

TEST(Tree, of_any_wishes_fills_the_square_and_steps_by_one_level) {
  std::mt19937_64 random(perdure::test_seed());
  Tree tree = Tree::of_roots();
  check(tree);
  for (int turn = 0; turn < 200; ++turn) {
    const bool grows = turn % 40 < 12;
    std::vector<Wish> wishes;
    for (const Key& key : tree.keys()) {
      const auto drawn = random() % 8;
      Wish wish = drawn == 0 && grows ? Wish::finer : drawn < 7 ? Wish::coarser : Wish::same;
      if (key.level == levels_max && wish == Wish::finer) wish = Wish::same;
      wishes.push_back(grows && wish == Wish::coarser && drawn > 2 ? Wish::same : wish);
    }
    tree = tree.adapted(wishes);
    check(tree);
    if (HasFatalFailure()) return;
  }
}

TEST(Tree, becomes_what_it_was_when_all_wish_it) {
  Tree tree = Tree::of_roots();
  std::vector<Wish> wishes(tree.size(), Wish::same);
  wishes.at(5) = Wish::finer;
  tree = tree.adapted(wishes);
  EXPECT_EQ(tree.size(), Tree::of_roots().size() + 3);
  for (int turn = 0; turn < 3; ++turn) {
    tree = tree.adapted(std::vector<Wish>(tree.size(), Wish::coarser));
  }
  EXPECT_EQ(tree.keys(), Tree::of_roots().keys());
}

TEST(Tree, makes_the_neighbours_of_what_becomes_finer_finer_too) {
  Tree tree = Tree::of_roots();
  const Key root = tree.keys()[0];
  Key key = root;
  for (int level = 0; level < 4; ++level) {
    std::vector<Wish> wishes(tree.size(), Wish::same);
    wishes.at(tree.find(key)) = Wish::finer;
    tree = tree.adapted(wishes);
    check(tree);
    key = key.quarter(0);
    ASSERT_NE(tree.find(key), Tree::none);
  }
  EXPECT_EQ(tree.find(beside(root, Side::left)), Tree::none);
}

}  // namespace
}  // namespace mesh
