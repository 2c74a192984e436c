// SPDX-License-Identifier: BSD-3-Clause
//
// Passive target: locks of both kinds, lock_all, the four flushes, and sync.
#include "suite.hpp"

namespace suite {
namespace {

class Passive : public WindowTest {};

TEST_F(Passive, an_exclusive_lock_makes_read_and_write_one) {
  constexpr int rounds = 100;
  Cells cells(2);
  for (int i = 0; i < rounds; ++i) {
    std::int64_t value = -1;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, cells);
    get(value, 0, 1, cells);
    MPI_Win_flush(0, cells);
    value += 1;
    put(value, 0, 1, cells);
    MPI_Win_unlock(0, cells);
  }
  barrier();
  std::int64_t total = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, cells);
  get(total, 0, 1, cells);
  MPI_Win_unlock(0, cells);
  EXPECT_EQ(total, rounds * ranks());
}

TEST_F(Passive, a_lock_that_is_known_to_be_free_need_not_be_checked) {
  Cells cells(2);
  std::int64_t mine = 4 + rank();
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(), MPI_MODE_NOCHECK, cells);  // each has one locker
  put(mine, next(), 0, cells);
  MPI_Win_unlock(next(), cells);
  barrier();
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, cells);
  EXPECT_EQ(cells[0], 4 + previous());
  MPI_Win_unlock(rank(), cells);
  barrier();
  MPI_Win_lock_all(MPI_MODE_NOCHECK, cells);
  mine += 100;
  put(mine, next(), 1, cells);
  MPI_Win_unlock_all(cells);
  barrier();
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, cells);
  EXPECT_EQ(cells[1], 104 + previous());
  MPI_Win_unlock(rank(), cells);
}

TEST_F(Passive, what_was_flushed_is_at_the_target) {
  Cells cells(4);
  std::int64_t mine = 0;
  MPI_Win_lock_all(0, cells);
  for (std::int64_t round = 1; round <= 10; ++round) {
    mine = 100 * round + rank();
    put(mine, next(), 2, cells);
    MPI_Win_flush(next(), cells);
    barrier();
    MPI_Win_sync(cells);
    EXPECT_EQ(cells[2], 100 * round + previous());
    barrier();
  }
  MPI_Win_unlock_all(cells);
}

TEST_F(Passive, flush_all_reaches_every_target) {
  Cells cells(8);
  const std::int64_t mine = 6 * rank() + 1;
  MPI_Win_lock_all(0, cells);
  for (int target = 0; target < ranks(); ++target) {
    MPI_Put(&mine, 1, MPI_INT64_T, target, cells.at(target, static_cast<std::size_t>(rank())), 1,
            MPI_INT64_T, cells);
  }
  MPI_Win_flush_all(cells);
  barrier();
  MPI_Win_sync(cells);
  for (int i = 0; i < 8; ++i) {
    EXPECT_EQ(cells[static_cast<std::size_t>(i)], i < ranks() ? 6 * i + 1 : 0);
  }
  barrier();
  MPI_Win_unlock_all(cells);
}

TEST_F(Passive, a_local_flush_gives_the_origin_back) {
  Cells cells(16);
  Epoch epoch(cells, MPI_COMM_WORLD, Sync::by_lock_all);
  epoch.begin();
  std::int64_t buffer = 0;
  for (std::size_t cell = 0; cell < 16; ++cell) {
    buffer = static_cast<std::int64_t>(cell) * 10 + rank();
    put(buffer, next(), cell, cells);
    if (cell % 2 == 0) {
      MPI_Win_flush_local(next(), cells);
    } else {
      MPI_Win_flush_local_all(cells);
    }
    buffer = -1;
  }
  epoch.end();
  for (std::size_t cell = 0; cell < 16; ++cell) {
    EXPECT_EQ(cells[cell], static_cast<std::int64_t>(cell) * 10 + previous());
  }
}

TEST_F(Passive, a_get_is_there_after_a_local_flush) {
  Cells cells(4);
  cells[3] = 12 + rank();
  Epoch epoch(cells, MPI_COMM_WORLD, Sync::by_lock);
  epoch.begin();
  std::int64_t seen = -1;
  get(seen, next(), 3, cells);
  MPI_Win_flush_local(next(), cells);
  EXPECT_EQ(seen, 12 + next());
  seen = -1;
  get(seen, rank(), 3, cells);
  MPI_Win_flush_local_all(cells);
  EXPECT_EQ(seen, 12 + rank());
  epoch.end();
}

TEST_F(Passive, many_locks_one_after_the_other) {
  Cells cells(4);
  const std::int64_t one = 1;
  for (int round = 0; round < 8; ++round) {
    for (int step = 0; step < ranks(); ++step) {
      const int target = (rank() + step) % ranks();
      MPI_Win_lock(round % 2 == 0 ? MPI_LOCK_SHARED : MPI_LOCK_EXCLUSIVE, target, 0, cells);
      MPI_Accumulate(&one, 1, MPI_INT64_T, target, cells.at(target, 1), 1, MPI_INT64_T, MPI_SUM,
                     cells);
      MPI_Win_unlock(target, cells);
    }
  }
  barrier();
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, cells);
  EXPECT_EQ(cells[1], 8 * ranks());
  MPI_Win_unlock(rank(), cells);
}

// Whoever has the lock finds all cells equal, also where the library copies by itself.
TEST_F(Passive, large_transfers_stay_within_an_exclusive_lock) {
  constexpr std::size_t count = 20000;
  constexpr int rounds = 20;
  Cells cells(count);
  std::vector<std::int64_t> seen(count);
  for (int round = 0; round < rounds; ++round) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, cells);
    MPI_Get(seen.data(), count, MPI_INT64_T, 0, cells.at(0, 0), count, MPI_INT64_T, cells);
    MPI_Win_flush(0, cells);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), seen[0]), count);
    for (std::int64_t& cell : seen) ++cell;
    MPI_Put(seen.data(), count, MPI_INT64_T, 0, cells.at(0, 0), count, MPI_INT64_T, cells);
    MPI_Win_unlock(0, cells);
  }
  barrier();
  if (rank() == 0) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, cells);
    EXPECT_EQ(cells[0], rounds * ranks());
    EXPECT_EQ(cells[count - 1], rounds * ranks());
    MPI_Win_unlock(0, cells);
  }
  barrier();
}

TEST_F(Passive, an_unlock_is_enough_for_the_owner_to_see_it) {
  Cells cells(2);
  std::int64_t mine = 66 + rank();
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, next(), 0, cells);
  put(mine, next(), 1, cells);
  MPI_Win_unlock(next(), cells);
  barrier();
  std::int64_t seen = -1;
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, cells);
  get(seen, rank(), 1, cells);
  MPI_Win_unlock(rank(), cells);
  EXPECT_EQ(seen, 66 + previous());
}

TEST_F(Passive, stores_through_shared_memory_are_ordered_by_sync) {
  Cells cells(2, Made::by_allocate_shared);
  std::int64_t* theirs = nullptr;
  MPI_Aint bytes = 0;
  int unit = 0;
  MPI_Win_shared_query(cells, next(), &bytes, &unit, &theirs);
  MPI_Win_lock_all(MPI_MODE_NOCHECK, cells);
  for (std::int64_t round = 1; round <= 5; ++round) {
    theirs[1] = 10 * round + rank();
    MPI_Win_sync(cells);
    barrier();
    MPI_Win_sync(cells);
    EXPECT_EQ(cells[1], 10 * round + previous());
    barrier();
  }
  MPI_Win_unlock_all(cells);
}

TEST_F(Passive, one_rank_may_work_while_the_others_do_not) {
  PERDURE_RULES_OF_COMMITS_FORBID("only rank 0 unlocks all");
  Cells cells(2);
  const std::int64_t mine = 8;
  if (rank() == 0) {
    MPI_Win_lock_all(0, cells);
    for (int target = 0; target < ranks(); ++target) {
      MPI_Put(&mine, 1, MPI_INT64_T, target, cells.at(target, 1), 1, MPI_INT64_T, cells);
    }
    MPI_Win_unlock_all(cells);
  }
  barrier();
  MPI_Win_lock(MPI_LOCK_SHARED, rank(), 0, cells);
  EXPECT_EQ(cells[1], 8);
  MPI_Win_unlock(rank(), cells);
}

TEST_F(Passive, epochs_may_be_empty) {
  Cells cells(2);
  for (int i = 0; i < 5; ++i) {
    MPI_Win_lock(MPI_LOCK_SHARED, next(), 0, cells);
    MPI_Win_flush(next(), cells);
    MPI_Win_unlock(next(), cells);
    MPI_Win_lock_all(0, cells);
    MPI_Win_flush_local_all(cells);
    MPI_Win_unlock_all(cells);
  }
  EXPECT_EQ(cells[0], 0);
}

}  // namespace
}  // namespace suite
