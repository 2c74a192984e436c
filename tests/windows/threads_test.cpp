// SPDX-License-Identifier: BSD-3-Clause
//
// Thread levels: the library asks for none and works at each. Run once for each level, which is
// named in the program's argument.
// ctest: RANKS 2 VARIANTS single funneled serialized multiple LIBS Threads::Threads
#include <atomic>
#include <string>
#include <thread>

#include "window_pool_fixture.hpp"

namespace perdure_test {
namespace {

int level_asked = MPI_THREAD_SINGLE;
int level_given = MPI_THREAD_SINGLE;

class Threads : public Windows {};

TEST_F(Threads, the_level_stays_what_the_program_asked_for) {
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(allocate({{"perdure_name", "u"}, {"perdure_commit", "fence"}}, 100, &win), MPI_SUCCESS)
      << perdure_last_error();
  ASSERT_EQ(MPI_Win_fence(0, win), MPI_SUCCESS) << perdure_last_error();
  int level = -1;
  MPI_Query_thread(&level);
  EXPECT_EQ(level, level_given);
  MPI_Win_free(&win);
}

TEST_F(Threads, an_asynchronous_commit_calls_mpi_from_the_callers_thread_only) {
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(allocate({{"perdure_name", "u"}, {"perdure_async", "true"}}, 1 << 16, &win),
            MPI_SUCCESS)
      << perdure_last_error();
  for (int step = 1; step <= 3; ++step) {
    base_of(win)[0] = step;
    ASSERT_EQ(MPI_Win_fence(PERDURE_MODE_COMMIT, win), MPI_SUCCESS) << perdure_last_error();
  }
  MPI_Win_free(&win);
}

// Threads put through windows of their own while others are made, committed and freed.
TEST_F(Threads, threads_work_on_windows_of_their_own_at_multiple) {
  if (level_given < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "one thread at a time";
  constexpr int count = 3;
  constexpr int puts = 200;
  std::vector<MPI_Win> wins(count, MPI_WIN_NULL);
  for (int i = 0; i < count; ++i) {
    const Keys keys = {{"perdure_name", "u"}, {"perdure_pool", pool(std::to_string(i))}};
    ASSERT_EQ(allocate(keys, puts, &wins[static_cast<std::size_t>(i)]), MPI_SUCCESS)
        << perdure_last_error();
  }
  std::vector<std::thread> threads;
  std::atomic<int> failures{0};
  for (const MPI_Win win : wins) {
    threads.emplace_back([win, &failures] {
      MPI_Win_lock_all(0, win);
      for (int at = 0; at < puts; ++at) {
        const std::int64_t value = at * 10 + rank();
        MPI_Put(&value, 1, MPI_INT64_T, right(), at, 1, MPI_INT64_T, win);
        MPI_Win_flush(right(), win);
      }
      failures += MPI_Win_unlock_all(win) != MPI_SUCCESS ? 1 : 0;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(failures, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  for (MPI_Win& win : wins) {
    ASSERT_EQ(perdure_win_commit(win, nullptr), PERDURE_OK) << perdure_last_error();
    EXPECT_EQ(base_of(win)[puts - 1], (puts - 1) * 10 + left());
    MPI_Win_free(&win);
  }
}

// All threads of all ranks add to the same cells, and draw numbers that no other gets.
TEST_F(Threads, threads_accumulate_in_one_window_at_multiple) {
  if (level_given < MPI_THREAD_MULTIPLE) GTEST_SKIP() << "one thread at a time";
  constexpr int count = 3;
  constexpr int rounds = 100;
  constexpr std::size_t cells = 300;
  MPI_Win win = MPI_WIN_NULL;
  ASSERT_EQ(allocate({{"perdure_name", "u"}, {"perdure_mode", "flush"}}, cells + 1, &win),
            MPI_SUCCESS)
      << perdure_last_error();
  MPI_Win_lock_all(0, win);
  std::vector<std::thread> threads;
  std::vector<std::int64_t> drawn(count);  // sums
  for (std::size_t thread = 0; thread < count; ++thread) {
    threads.emplace_back([win, &sum = drawn[thread]] {
      const std::vector<std::int64_t> ones(cells, 1);
      std::vector<std::int64_t> found(cells);
      for (int round = 0; round < rounds; ++round) {
        if (round % 2 == 0) {
          MPI_Accumulate(ones.data(), cells, MPI_INT64_T, 0, 0, cells, MPI_INT64_T, MPI_SUM, win);
        } else {
          MPI_Get_accumulate(ones.data(), cells, MPI_INT64_T, found.data(), cells, MPI_INT64_T, 0,
                             0, cells, MPI_INT64_T, MPI_SUM, win);
        }
        std::int64_t number = -1;
        MPI_Fetch_and_op(ones.data(), &number, MPI_INT64_T, 0, cells, MPI_SUM, win);
        MPI_Win_flush(0, win);
        sum += number;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  MPI_Win_unlock_all(win);
  std::int64_t mine = drawn[0] + drawn[1] + drawn[2];
  std::int64_t all = 0;
  int ranks = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  MPI_Allreduce(&mine, &all, 1, MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
  const std::int64_t calls = std::int64_t{count} * rounds * ranks;
  EXPECT_EQ(all, calls * (calls - 1) / 2);
  if (rank() == 0) {
    for (std::size_t cell = 0; cell <= cells; ++cell) EXPECT_EQ(base_of(win)[cell], calls);
  }
  MPI_Win_free(&win);
}

}  // namespace
}  // namespace perdure_test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  const std::string level = argc == 2 ? argv[1] : "single";
  if (level == "funneled") perdure_test::level_asked = MPI_THREAD_FUNNELED;
  if (level == "serialized") perdure_test::level_asked = MPI_THREAD_SERIALIZED;
  if (level == "multiple") perdure_test::level_asked = MPI_THREAD_MULTIPLE;
  MPI_Init_thread(&argc, &argv, perdure_test::level_asked, &perdure_test::level_given);
  return perdure_test::run_tests();
}
