// SPDX-License-Identifier: BSD-3-Clause
//
// The calls that return a request: rput, rget, raccumulate, rget_accumulate.
#include <algorithm>
#include <numeric>

#include "suite.hpp"

namespace suite {
namespace {

class Requests : public WindowTest, public testing::WithParamInterface<Sync> {};
INSTANTIATE_TEST_SUITE_P(Epochs, Requests, testing::Values(Sync::by_lock, Sync::by_lock_all),
                         [](const testing::TestParamInfo<Sync>& drawn) {
                           return name_of(drawn.param);
                         });

TEST_P(Requests, a_completed_rput_frees_the_origin_and_arrives) {
  Cells cells(8);
  Epoch epoch(cells, MPI_COMM_WORLD, GetParam());
  std::int64_t mine = 30 + rank();
  epoch.begin();
  for (std::size_t cell = 0; cell < 8; ++cell) {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Rput(&mine, 1, MPI_INT64_T, next(), cells.at(next(), cell), 1, MPI_INT64_T, cells,
             &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    EXPECT_EQ(request, MPI_REQUEST_NULL);
    mine += 100;  // the origin buffer is ours again
  }
  epoch.end();
  for (std::size_t cell = 0; cell < 8; ++cell) {
    EXPECT_EQ(cells[cell], 30 + previous() + 100 * static_cast<std::int64_t>(cell));
  }
}

TEST_P(Requests, a_completed_rget_has_the_value_inside_the_epoch) {
  Cells cells(8);
  std::iota(cells.begin(), cells.end(), 50 * rank());
  Epoch epoch(cells, MPI_COMM_WORLD, GetParam());
  epoch.begin();
  std::array<std::int64_t, 8> seen{};
  std::array<MPI_Request, 8> requests{};
  for (std::size_t cell = 0; cell < 8; ++cell) {
    MPI_Rget(&seen[cell], 1, MPI_INT64_T, next(), cells.at(next(), cell), 1, MPI_INT64_T, cells,
             &requests[cell]);
  }
  MPI_Waitall(8, requests.data(), MPI_STATUSES_IGNORE);
  for (std::size_t cell = 0; cell < 8; ++cell) {
    EXPECT_EQ(seen[cell], 50 * next() + static_cast<std::int64_t>(cell));
  }
  epoch.end();
}

TEST_P(Requests, raccumulates_of_all_ranks_add_up) {
  Cells cells(2);
  Epoch epoch(cells, MPI_COMM_WORLD, GetParam());
  const std::int64_t mine = rank() + 1;
  std::vector<MPI_Request> requests(static_cast<std::size_t>(ranks()));
  epoch.begin();
  for (int target = 0; target < ranks(); ++target) {
    MPI_Raccumulate(&mine, 1, MPI_INT64_T, target, cells.at(target, 1), 1, MPI_INT64_T, MPI_SUM,
                    cells, &requests[static_cast<std::size_t>(target)]);
  }
  MPI_Waitall(ranks(), requests.data(), MPI_STATUSES_IGNORE);
  epoch.end();
  EXPECT_EQ(cells[1], ranks() * (ranks() + 1) / 2);
  EXPECT_EQ(cells[0], 0);
}

TEST_P(Requests, rget_accumulate_draws_distinct_tickets) {
  Cells cells(1);
  Epoch epoch(cells, MPI_COMM_WORLD, GetParam());
  const std::int64_t one = 1;
  std::int64_t ticket = -1;
  epoch.begin();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Rget_accumulate(&one, 1, MPI_INT64_T, &ticket, 1, MPI_INT64_T, 0, cells.at(0, 0), 1,
                      MPI_INT64_T, MPI_SUM, cells, &request);
  int done = 0;
  while (done == 0) MPI_Test(&request, &done, MPI_STATUS_IGNORE);
  epoch.end();
  std::vector<std::int64_t> all(static_cast<std::size_t>(ranks()));
  MPI_Allgather(&ticket, 1, MPI_INT64_T, all.data(), 1, MPI_INT64_T, MPI_COMM_WORLD);
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(all[i], static_cast<std::int64_t>(i));
}

TEST_P(Requests, a_request_to_nobody_completes) {
  Cells cells(1);
  Epoch epoch(cells, MPI_COMM_WORLD, GetParam());
  std::int64_t value = 9;
  epoch.begin();
  MPI_Request request = MPI_REQUEST_NULL;
  MPI_Rput(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, cells, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Rget(&value, 1, MPI_INT64_T, MPI_PROC_NULL, 0, 1, MPI_INT64_T, cells, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  epoch.end();
  EXPECT_EQ(value, 9);
  EXPECT_EQ(cells[0], 0);
}

}  // namespace
}  // namespace suite
