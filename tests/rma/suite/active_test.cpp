// SPDX-License-Identifier: BSD-3-Clause
//
// Active target: fences with their assertions, and post, start, complete, wait and test.
#include "suite.hpp"

namespace suite {
namespace {

class Active : public WindowTest {
 protected:
  // A group of the ranks of the world in `members`.
  static MPI_Group group_of(std::vector<int> members) {
    MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
    MPI_Comm_group(MPI_COMM_WORLD, &world);
    MPI_Group_incl(world, static_cast<int>(members.size()), members.data(), &group);
    MPI_Group_free(&world);
    return group;
  }
};

TEST_F(Active, fences_take_every_assertion) {
  Cells cells(4);
  std::int64_t mine = 10 + rank();
  MPI_Win_fence(MPI_MODE_NOPRECEDE, cells);
  put(mine, next(), 0, cells);
  MPI_Win_fence(MPI_MODE_NOSTORE, cells);
  EXPECT_EQ(cells[0], 10 + previous());
  std::int64_t seen = -1;
  get(seen, next(), 0, cells);
  MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT, cells);
  EXPECT_EQ(seen, mine);
  MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOPRECEDE, cells);
  std::int64_t last = 20 + rank();
  put(last, next(), 1, cells);
  MPI_Win_fence(MPI_MODE_NOSTORE | MPI_MODE_NOPUT | MPI_MODE_NOSUCCEED, cells);
  EXPECT_EQ(cells[1], 20 + previous());
}

TEST_F(Active, a_fence_ends_one_epoch_and_begins_the_next) {
  Cells cells(2);
  MPI_Win_fence(0, cells);
  for (std::int64_t round = 0; round < 20; ++round) {
    std::int64_t mine = 1000 * round + rank();
    put(mine, next(), static_cast<std::size_t>(round % 2), cells);
    MPI_Win_fence(0, cells);
    EXPECT_EQ(cells[static_cast<std::size_t>(round % 2)], 1000 * round + previous());
    barrier();
  }
}

TEST_F(Active, the_owners_stores_are_seen_after_a_fence) {
  Cells cells(2);
  std::int64_t seen = -1;
  for (std::int64_t round = 1; round < 5; ++round) {
    cells[1] = 7 * round + rank();
    MPI_Win_fence(0, cells);
    get(seen, next(), 1, cells);
    MPI_Win_fence(0, cells);
    EXPECT_EQ(seen, 7 * round + next());
  }
}

TEST_F(Active, a_fence_without_transfers_is_a_fence) {
  Cells cells(2);
  for (int i = 0; i < 10; ++i) MPI_Win_fence(0, cells);
  EXPECT_EQ(cells[0], 0);
  EXPECT_EQ(cells[1], 0);
}

TEST_F(Active, each_rank_exposes_to_one_and_reaches_another) {
  Cells cells(2);
  MPI_Group from = group_of({previous()}), to = group_of({next()});
  for (std::int64_t round = 1; round <= 5; ++round) {
    std::int64_t mine = 10 * round + rank();
    MPI_Win_post(from, 0, cells);
    MPI_Win_start(to, 0, cells);
    put(mine, next(), 1, cells);
    MPI_Win_complete(cells);
    MPI_Win_wait(cells);
    EXPECT_EQ(cells[1], 10 * round + previous());
  }
  MPI_Group_free(&from);
  MPI_Group_free(&to);
}

TEST_F(Active, a_test_tells_when_the_epoch_is_over) {
  Cells cells(2);
  MPI_Group from = group_of({previous()}), to = group_of({next()});
  std::int64_t mine = 90 + rank();
  MPI_Win_post(from, 0, cells);
  MPI_Win_start(to, 0, cells);
  put(mine, next(), 0, cells);
  int over = 0;
  if (ranks() > 1) {
    MPI_Win_test(cells, &over);
    barrier();  // nobody has completed before this
    EXPECT_EQ(over, 0);
  }
  MPI_Win_complete(cells);
  while (over == 0) MPI_Win_test(cells, &over);
  EXPECT_EQ(cells[0], 90 + previous());
  barrier();
  EXPECT_EQ(cells[1], 0);
  MPI_Group_free(&from);
  MPI_Group_free(&to);
}

TEST_F(Active, post_and_start_take_every_assertion) {
  Cells cells(2);
  MPI_Group from = group_of({previous()}), to = group_of({next()});
  std::int64_t mine = 33 + rank();
  MPI_Win_post(from, MPI_MODE_NOCHECK | MPI_MODE_NOSTORE, cells);
  barrier();  // what NOCHECK promises
  MPI_Win_start(to, MPI_MODE_NOCHECK, cells);
  put(mine, next(), 1, cells);
  MPI_Win_complete(cells);
  MPI_Win_wait(cells);
  EXPECT_EQ(cells[1], 33 + previous());
  std::int64_t seen = -1;
  MPI_Win_post(from, MPI_MODE_NOPUT, cells);
  MPI_Win_start(to, 0, cells);
  get(seen, next(), 1, cells);
  MPI_Win_complete(cells);
  MPI_Win_wait(cells);
  EXPECT_EQ(seen, mine);
  MPI_Group_free(&from);
  MPI_Group_free(&to);
}

TEST_F(Active, an_epoch_with_nobody_is_over_at_once) {
  Cells cells(2);
  MPI_Win_post(MPI_GROUP_EMPTY, 0, cells);
  MPI_Win_start(MPI_GROUP_EMPTY, 0, cells);
  MPI_Win_complete(cells);
  MPI_Win_wait(cells);
  EXPECT_EQ(cells[0], 0);
}

TEST_F(Active, all_put_to_one_that_waits) {
  PERDURE_RULES_OF_COMMITS_FORBID("only rank 0 waits");
  Cells cells(8);
  std::int64_t mine = 5 * rank() + 1;
  std::vector<int> everyone(static_cast<std::size_t>(ranks()));
  for (int i = 0; i < ranks(); ++i) everyone[static_cast<std::size_t>(i)] = i;
  MPI_Group all = group_of(everyone), zero = group_of({0});
  if (rank() == 0) MPI_Win_post(all, 0, cells);
  MPI_Win_start(zero, 0, cells);
  put(mine, 0, static_cast<std::size_t>(rank()), cells);
  MPI_Win_complete(cells);
  if (rank() == 0) {
    MPI_Win_wait(cells);
    for (int i = 0; i < ranks(); ++i) EXPECT_EQ(cells[static_cast<std::size_t>(i)], 5 * i + 1);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&zero);
}

TEST_F(Active, a_window_changes_from_fences_to_posts_to_locks) {
  Cells cells(3);
  std::int64_t value = 1 + rank();
  constexpr std::array syncs{Sync::by_fence, Sync::by_post, Sync::by_lock_all, Sync::by_fence,
                             Sync::by_lock,  Sync::by_post, Sync::by_fence};
  std::int64_t round = 0;
  for (const Sync sync : syncs) {
    Epoch epoch(cells, MPI_COMM_WORLD, sync);
    value = 100 * ++round + rank();
    epoch.begin();
    put(value, next(), 1, cells);
    epoch.end();
    EXPECT_EQ(cells[1], 100 * round + previous()) << name_of(sync);
    barrier();
  }
}

}  // namespace
}  // namespace suite
