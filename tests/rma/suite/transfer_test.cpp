// SPDX-License-Identifier: BSD-3-Clause
//
// Put, get and the accumulating calls, on windows of every kind, in epochs of every kind.
#include <algorithm>
#include <numeric>
#include <set>

#include "suite.hpp"

namespace suite {
namespace {

struct Setting {
  Made made;
  Sync sync;
};

class Transfer : public WindowTest, public testing::WithParamInterface<Setting> {
 protected:
  Transfer() : made_(GetParam().made), sync_(GetParam().sync) {}
  Made made_;
  Sync sync_;
};

std::string name_of_setting(const testing::TestParamInfo<Setting>& info) {
  return name_of(info.param.made) + "_" + name_of(info.param.sync);
}

INSTANTIATE_TEST_SUITE_P(Windows, Transfer,
                         testing::Values(Setting{Made::by_allocate, Sync::by_fence},
                                         Setting{Made::by_allocate, Sync::by_post},
                                         Setting{Made::by_allocate, Sync::by_lock},
                                         Setting{Made::by_allocate, Sync::by_lock_all},
                                         Setting{Made::by_create, Sync::by_fence},
                                         Setting{Made::by_create, Sync::by_post},
                                         Setting{Made::by_create, Sync::by_lock_all},
                                         Setting{Made::by_allocate_shared, Sync::by_fence},
                                         Setting{Made::by_allocate_shared, Sync::by_lock_all},
                                         Setting{Made::by_dynamic, Sync::by_fence},
                                         Setting{Made::by_dynamic, Sync::by_lock_all}),
                         name_of_setting);

TEST_P(Transfer, what_is_put_arrives_at_the_neighbour_and_nowhere_else) {
  Cells cells(16, made_);
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  for (std::int64_t round = 1; round <= 3; ++round) {
    std::int64_t mine = round * 100 + rank();
    epoch.begin();
    put(mine, next(), static_cast<std::size_t>(round), cells);
    epoch.end();
    for (std::int64_t cell = 0; cell < 16; ++cell) {
      const bool written = cell >= 1 && cell <= round;
      EXPECT_EQ(cells[static_cast<std::size_t>(cell)], written ? cell * 100 + previous() : 0)
          << "cell " << cell << " in round " << round;
    }
    barrier();  // the next epoch's first store is another rank's
  }
}

TEST_P(Transfer, what_is_got_is_what_the_owner_stored) {
  Cells cells(16, made_);
  std::iota(cells.begin(), cells.end(), 1000 * rank());
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  std::vector<std::int64_t> seen(static_cast<std::size_t>(ranks()) * 2, -1);
  epoch.begin();
  for (int target = 0; target < ranks(); ++target) {
    const auto place = static_cast<std::size_t>(target) * 2;
    get(seen[place], target, 3, cells);
    get(seen[place + 1], target, 15, cells);
  }
  epoch.end();
  for (int target = 0; target < ranks(); ++target) {
    const auto place = static_cast<std::size_t>(target) * 2;
    EXPECT_EQ(seen[place], 1000 * target + 3);
    EXPECT_EQ(seen[place + 1], 1000 * target + 15);
  }
}

TEST_P(Transfer, long_transfers_arrive_whole) {
  constexpr std::size_t count = 40000;  // beyond what any MPI sends eagerly
  Cells cells(2 * count, made_);
  std::vector<std::int64_t> mine(count);
  std::iota(mine.begin(), mine.end(), 1'000'000 * rank());
  std::vector<std::int64_t> back(count, -1);
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  epoch.begin();
  MPI_Put(mine.data(), count, MPI_INT64_T, next(), cells.at(next(), count), count, MPI_INT64_T,
          cells);
  epoch.end();
  for (std::size_t i = 0; i < count; ++i) {
    ASSERT_EQ(cells[count + i], 1'000'000 * previous() + static_cast<std::int64_t>(i));
    ASSERT_EQ(cells[i], 0);
  }
  epoch.begin();
  MPI_Get(back.data(), count, MPI_INT64_T, next(), cells.at(next(), count), count, MPI_INT64_T,
          cells);
  epoch.end();
  EXPECT_EQ(back, mine);
}

TEST_P(Transfer, accumulates_of_all_ranks_on_one_cell_add_up) {
  Cells cells(4, made_);
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  const std::int64_t mine = rank() + 1;
  epoch.begin();
  for (int target = 0; target < ranks(); ++target) {
    for (int i = 0; i < 5; ++i) {
      MPI_Accumulate(&mine, 1, MPI_INT64_T, target, cells.at(target, 2), 1, MPI_INT64_T, MPI_SUM,
                     cells);
    }
  }
  epoch.end();
  EXPECT_EQ(cells[2], 5 * ranks() * (ranks() + 1) / 2);
  EXPECT_EQ(cells[1], 0);
  EXPECT_EQ(cells[3], 0);
}

TEST_P(Transfer, get_accumulate_hands_back_what_was_there) {
  Cells cells(4, made_);
  std::iota(cells.begin(), cells.end(), 10 * rank());
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  std::array<std::int64_t, 4> mine{1, 2, 3, 4};
  std::array<std::int64_t, 4> before{};
  std::array<std::int64_t, 4> after{};
  epoch.begin();
  MPI_Get_accumulate(mine.data(), 4, MPI_INT64_T, before.data(), 4, MPI_INT64_T, next(),
                     cells.at(next(), 0), 4, MPI_INT64_T, MPI_SUM, cells);
  epoch.end();
  barrier();
  epoch.begin();
  MPI_Get_accumulate(nullptr, 0, MPI_INT64_T, after.data(), 4, MPI_INT64_T, next(),
                     cells.at(next(), 0), 4, MPI_INT64_T, MPI_NO_OP, cells);
  epoch.end();
  for (std::size_t i = 0; i < 4; ++i) {
    const std::int64_t was = 10 * next() + static_cast<std::int64_t>(i);
    EXPECT_EQ(before[i], was);
    EXPECT_EQ(after[i], was + mine[i]);
    EXPECT_EQ(cells[i], 10 * rank() + static_cast<std::int64_t>(i) + mine[i]);
  }
}

TEST_P(Transfer, no_two_ranks_fetch_the_same_ticket) {
  constexpr int draws = 6;
  Cells cells(1, made_);
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  const std::int64_t one = 1;
  std::array<std::int64_t, draws> mine{};
  epoch.begin();
  for (std::int64_t& ticket : mine) {
    MPI_Fetch_and_op(&one, &ticket, MPI_INT64_T, 0, cells.at(0, 0), MPI_SUM, cells);
  }
  epoch.end();
  std::vector<std::int64_t> all(static_cast<std::size_t>(draws * ranks()));
  MPI_Allgather(mine.data(), draws, MPI_INT64_T, all.data(), draws, MPI_INT64_T, MPI_COMM_WORLD);
  std::set<std::int64_t> distinct(all.begin(), all.end());
  EXPECT_EQ(distinct.size(), all.size());
  EXPECT_EQ(*distinct.begin(), 0);
  EXPECT_EQ(*distinct.rbegin(), draws * ranks() - 1);
  if (rank() == 0) {
    EXPECT_EQ(cells[0], draws * ranks());
  }
}

TEST_P(Transfer, one_rank_wins_a_compare_and_swap) {
  Cells cells(2, made_);
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  const std::int64_t mine = rank() + 1;
  const std::int64_t empty = 0;
  std::int64_t found = -1;
  epoch.begin();
  MPI_Compare_and_swap(&mine, &empty, &found, MPI_INT64_T, 0, cells.at(0, 1), cells);
  epoch.end();
  int winners = 0;
  const int won = found == 0 ? 1 : 0;
  MPI_Allreduce(&won, &winners, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  EXPECT_EQ(winners, 1);
  std::int64_t winner = won != 0 ? mine : 0;
  MPI_Allreduce(MPI_IN_PLACE, &winner, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (won == 0) {
    EXPECT_EQ(found, winner);
  }
  if (rank() == 0) {
    EXPECT_EQ(cells[1], winner);
  }
}

TEST_P(Transfer, nothing_and_nobody_are_allowed_as_targets) {
  Cells cells(2, made_);
  std::fill(cells.begin(), cells.end(), 7);
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  std::int64_t value = 42;
  epoch.begin();
  MPI_Put(&value, 0, MPI_INT64_T, next(), cells.at(next(), 0), 0, MPI_INT64_T, cells);
  MPI_Put(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, cells);
  MPI_Get(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, cells);
  MPI_Accumulate(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, MPI_SUM, cells);
  epoch.end();
  EXPECT_EQ(value, 42);
  EXPECT_EQ(cells[0], 7);
  EXPECT_EQ(cells[1], 7);
}

TEST_P(Transfer, ranks_reach_their_own_memory_too) {
  Cells cells(2, made_);
  Epoch epoch(cells, MPI_COMM_WORLD, sync_);
  std::int64_t mine = 5 + rank();
  epoch.begin();
  put(mine, rank(), 1, cells);
  epoch.end();
  EXPECT_EQ(cells[1], mine);
  std::int64_t back = -1;
  epoch.begin();
  get(back, rank(), 1, cells);
  epoch.end();
  EXPECT_EQ(back, mine);
}

}  // namespace
}  // namespace suite
