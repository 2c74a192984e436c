// SPDX-License-Identifier: BSD-3-Clause
//
// Which version all ranks can have, from every set of files that nodes may have left.
// ctest: NAME levels_plan_test LABELS truth
#include "levels/recovery_plan.hpp"

#include <gtest/gtest.h>

namespace perdure {
namespace {

// Ranks in failure groups of `group` neighbours, each on a node of its own.
class Plans : public testing::Test {
 protected:
  void make(std::uint32_t ranks, std::uint32_t group, std::uint32_t losses) {
    census_ = {};
    census_.job.ranks = ranks;
    group_ = group;
    losses_ = losses;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) census_.nodes.push_back(rank);
    census_.hosts.assign(ranks, "node");
  }
  void add(VersionId id, std::uint32_t rank, std::uint32_t at, bool image = true,
           bool guard = true) {
    if (image) {
      census_.levels.push_back({{SealedKind::image, rank, 0}, {}, id, 100, at, {}});
    }
    if (!guard) return;
    LevelFileFact fact{{SealedKind::guard, rank, 0}, {}, id, 100, at, {}};
    for (std::uint32_t i = 0; i < group_; ++i) {
      fact.guard.members.push_back(rank / group_ * group_ + i);
    }
    fact.guard.rows = losses_;
    fact.guard.image_bytes.assign(group_, 100);
    fact.guard.image_checksums.assign(group_, 1);
    census_.levels.push_back(fact);
  }
  Census census_;
  std::uint32_t group_ = 2;
  std::uint32_t losses_ = 1;
};

TEST_F(Plans, every_loss_is_rebuilt_within_the_scheme_and_none_beyond_it) {
  for (const auto& [ranks, group, losses] : {std::array{4U, 2U, 1U}, std::array{6U, 3U, 1U},
                                             std::array{6U, 6U, 2U}, std::array{5U, 5U, 4U}}) {
    for (std::uint32_t lost = 0; lost < 1U << ranks; ++lost) {
      make(ranks, group, losses);
      bool borne = true;
      for (std::uint32_t first = 0; first < ranks; first += group) {
        const auto gone =
            static_cast<unsigned>(__builtin_popcount(lost >> first & ((1U << group) - 1)));
        borne = borne && gone <= losses;
      }
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        if ((lost >> rank & 1) == 0) add({1, 7}, rank, rank);
      }
      const auto plan = plan_recovery(census_);
      ASSERT_EQ(plan.has_value(), borne) << "of " << ranks << " lost " << lost;
      if (!plan) continue;
      std::uint32_t found = 0;
      for (const GroupRebuild& rebuild : plan->rebuilds) {
        for (const auto member : rebuild.lost)
          found |= 1U << rebuild.files.contents.members[member];
      }
      EXPECT_EQ(found, lost);
      for (std::uint32_t rank = 0; rank < ranks; ++rank) {
        EXPECT_EQ(plan->image_at[rank], (lost >> rank & 1) != 0 ? no_rank : rank);
      }
    }
  }
}

TEST_F(Plans, the_newest_version_that_all_can_have_is_chosen) {
  make(4, 2, 1);
  for (std::uint32_t rank = 0; rank < 4; ++rank) add({3, 20}, rank, rank);
  for (std::uint32_t rank = 1; rank < 4; ++rank) add({3, 30}, rank, rank, true, false);
  EXPECT_EQ(plan_recovery(census_)->id, (VersionId{3, 20}));
  add({3, 30}, 0, 2, true, false);  // on another node
  const auto plan = plan_recovery(census_);
  EXPECT_EQ(plan->id, (VersionId{3, 30}));
  EXPECT_EQ(plan->image_at[0], 2U);
}

TEST_F(Plans, a_later_incarnation_counts_before_a_higher_number) {
  make(2, 2, 1);
  add({3, 60}, 0, 0);
  add({3, 60}, 1, 1);
  add({8, 51}, 0, 0);
  add({8, 51}, 1, 1);
  EXPECT_EQ(plan_recovery(census_)->id, (VersionId{8, 51}));
}

TEST_F(Plans, guards_of_other_groups_do_not_help) {
  make(4, 4, 1);
  for (const std::uint32_t rank : {0U, 1U, 3U}) add({1, 5}, rank, rank);
  ASSERT_TRUE(plan_recovery(census_));
  // The guard of rank 3 is from when the groups were others.
  census_.levels.back().guard.members = {3, 2};
  census_.levels.back().guard.image_bytes.resize(2);
  census_.levels.back().guard.image_checksums.resize(2);
  const auto plan = plan_recovery(census_);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->rebuilds.front().files.contents.members, (std::vector<std::uint32_t>{3, 2}));
}

TEST_F(Plans, tell_how_many_nodes_may_be_lost) {
  make(6, 6, 2);
  for (std::uint32_t rank = 0; rank < 6; ++rank) add({1, 7}, rank, rank);
  EXPECT_EQ(bearable_losses(census_, {1, 7}), 2U);
  EXPECT_EQ(bearable_losses(census_, {1, 8}), 0U);
  census_.levels.erase(census_.levels.begin());
  EXPECT_EQ(bearable_losses(census_, {1, 7}), 1U);
}

TEST_F(Plans, what_is_guarded_best_is_not_what_is_newest) {
  make(4, 2, 1);
  EXPECT_EQ(best_guarded(census_), std::nullopt);
  for (std::uint32_t rank = 0; rank < 4; ++rank) add({2, 9}, rank, rank, true, rank < 2);
  EXPECT_EQ(best_guarded(census_), std::nullopt);  // ranks 2 and 3 have no guards of it
  for (std::uint32_t rank = 0; rank < 3; ++rank) add({1, 6}, rank, rank);
  EXPECT_EQ(best_guarded(census_), (VersionId{1, 6}));
  for (std::uint32_t rank = 0; rank < 4; ++rank) add({1, 3}, rank, rank);
  EXPECT_EQ(best_guarded(census_), (VersionId{1, 3}));  // the other has lost one already
  add({2, 9}, 2, 2, false);
  add({2, 9}, 3, 3, false);
  EXPECT_EQ(best_guarded(census_), (VersionId{2, 9}));
}

TEST_F(Plans, a_refusal_names_ranks_versions_and_hosts) {
  make(3, 3, 1);
  census_.hosts = {"pd0", "pd1", "pd1"};
  census_.nodes = {0, 1, 1};
  census_.files.push_back({1, {}, 4, {}, 1});
  add({1, 40}, 1, 1);
  const std::string text = describe_holdings(census_);
  for (const char* part :
       {"of 3 ranks", "some node: 1;", "version 40: images of ranks 1", "pd0, pd1"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace perdure
