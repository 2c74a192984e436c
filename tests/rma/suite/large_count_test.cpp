// SPDX-License-Identifier: BSD-3-Clause
//
// The calls of MPI 4 whose counts, sizes and units are wide (MPI_Put_c and the others).
#include <algorithm>
#include <numeric>

#include "suite.hpp"

namespace suite {
namespace {

class LargeCounts : public WindowTest {};

#if !defined(PERDURE_SUITE_LARGE_COUNTS)
TEST_F(LargeCounts, are_not_in_this_mpi) {
  GTEST_SKIP() << "mpi.h has no MPI_Put_c";
}
#else
constexpr MPI_Count four = 4;

// A window made by a wide call, with a wide put and get on it.
void use(MPI_Win window, std::int64_t* base) {
  std::fill(base, base + 8, 0);
  std::array<std::int64_t, 4> mine{}, back{};
  std::iota(mine.begin(), mine.end(), 40 * rank());
  MPI_Win_fence(0, window);
  MPI_Put_c(mine.data(), four, MPI_INT64_T, next(), 2, four, MPI_INT64_T, window);
  MPI_Win_fence(0, window);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(base[2 + i], 40 * previous() + i);
  MPI_Get_c(back.data(), four, MPI_INT64_T, next(), 2, four, MPI_INT64_T, window);
  MPI_Win_fence(0, window);
  EXPECT_EQ(back, mine);
  EXPECT_EQ(base[1], 0);
  EXPECT_EQ(base[6], 0);
}

TEST_F(LargeCounts, create_c_takes_memory) {
  std::array<std::int64_t, 8> memory{};
  MPI_Win window = MPI_WIN_NULL;
  const MPI_Aint unit = 8;
  MPI_Win_create_c(memory.data(), 64, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  use(window, memory.data());
  MPI_Win_free(&window);
}

TEST_F(LargeCounts, allocate_c_gives_memory) {
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  const MPI_Aint unit = 8;
  MPI_Win_allocate_c(64, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  use(window, base);
  MPI_Win_free(&window);
}

TEST_F(LargeCounts, allocate_shared_c_and_shared_query_c_agree) {
  std::int64_t* base = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  const MPI_Aint unit = 8;
  MPI_Win_allocate_shared_c(64, unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base, &window);
  use(window, base);
  MPI_Aint bytes = 0, their_unit = 0;
  std::int64_t* theirs = nullptr;
  MPI_Win_shared_query_c(window, next(), &bytes, &their_unit, &theirs);
  EXPECT_EQ(bytes, 64);
  EXPECT_EQ(their_unit, 8);
  EXPECT_EQ(theirs[3], 40 * rank() + 1);
  barrier();
  MPI_Win_free(&window);
}

TEST_F(LargeCounts, accumulates_and_fetches_work) {
  Cells cells(8);
  std::iota(cells.begin(), cells.end(), 0);
  const std::array<std::int64_t, 4> mine{1, 2, 3, 4};
  std::array<std::int64_t, 4> before{};
  MPI_Win_fence(0, cells);
  MPI_Accumulate_c(mine.data(), four, MPI_INT64_T, next(), 0, four, MPI_INT64_T, MPI_SUM, cells);
  MPI_Get_accumulate_c(mine.data(), four, MPI_INT64_T, before.data(), four, MPI_INT64_T, next(), 4,
                       four, MPI_INT64_T, MPI_PROD, cells);
  MPI_Win_fence(0, cells);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto was = static_cast<std::int64_t>(i);
    EXPECT_EQ(cells[i], was + mine[i]);
    EXPECT_EQ(before[i], was + 4);
    EXPECT_EQ(cells[4 + i], (was + 4) * mine[i]);
  }
}

TEST_F(LargeCounts, requests_of_wide_calls_complete) {
  Cells cells(8);
  const std::array<std::int64_t, 4> mine{1, 2, 3, 4};
  std::array<std::int64_t, 4> before{}, back{};
  std::array<MPI_Request, 3> requests{};
  Epoch epoch(cells, MPI_COMM_WORLD, Sync::by_lock_all);
  epoch.begin();
  MPI_Rput_c(mine.data(), four, MPI_INT64_T, next(), 0, four, MPI_INT64_T, cells, &requests[0]);
  MPI_Raccumulate_c(mine.data(), 2, MPI_INT64_T, next(), 4, 2, MPI_INT64_T, MPI_SUM, cells,
                    &requests[1]);
  MPI_Rget_accumulate_c(mine.data(), 2, MPI_INT64_T, before.data(), 2, MPI_INT64_T, next(), 6, 2,
                        MPI_INT64_T, MPI_SUM, cells, &requests[2]);
  MPI_Waitall(3, requests.data(), MPI_STATUSES_IGNORE);
  MPI_Win_flush_all(cells);
  MPI_Rget_c(back.data(), four, MPI_INT64_T, next(), 0, four, MPI_INT64_T, cells, &requests[0]);
  MPI_Wait(&requests[0], MPI_STATUS_IGNORE);
  EXPECT_EQ(back, mine);
  epoch.end();
  const std::array<std::int64_t, 8> expected{1, 2, 3, 4, 1, 2, 1, 2};
  EXPECT_TRUE(std::equal(cells.begin(), cells.end(), expected.begin()));
  EXPECT_EQ(before, (std::array<std::int64_t, 4>{}));
}
#endif

}  // namespace
}  // namespace suite
