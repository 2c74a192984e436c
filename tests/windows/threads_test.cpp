// SPDX-License-Identifier: BSD-3-Clause
//
// Thread levels: the library asks for none and works at each. Run once for each level, which is
// named in the program's argument.
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
