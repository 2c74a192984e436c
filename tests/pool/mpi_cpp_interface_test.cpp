// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_mpi.hpp: a pool of all ranks. Run at 1 and 2 ranks; every rank runs every test.
// ctest: NAME pool_mpi_cpp_test RANKS 1 2
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <string>

#include "mpi_test.hpp"
#include "perdure/perdure_mpi.hpp"

namespace {

class PoolOfRanks : public perdure_test::DirectoryOfRanks {
 protected:
  perdure::Pool open() const { return perdure::open_mpi(MPI_COMM_WORLD, directory_ + "/pool"); }
};

TEST_F(PoolOfRanks, all_ranks_get_the_same_version_back) {
  for (std::int64_t run = 0; run < 2; ++run) {
    auto pool = open();
    auto u = pool.array<std::int64_t>("u", {1000}, perdure::Mode::twin);
    EXPECT_EQ(pool.restart(), static_cast<std::uint64_t>(run));
    EXPECT_EQ(u.consistent()[999], run == 0 ? 0 : 100 + rank_);
    std::ranges::fill(u.working(), 100 + rank_);
    EXPECT_EQ(pool.commit(), static_cast<std::uint64_t>(run + 1));
    pool.close();
  }
}

TEST_F(PoolOfRanks, an_error_of_one_rank_is_thrown_on_all) {
  try {
    (void)perdure::open_mpi(MPI_COMM_WORLD, directory_ + "/wrong",
                            {.copy_threads = rank_ == 0 ? 1000U : 1U});
    FAIL() << "no error";
  } catch (const perdure::Error& error) {
    EXPECT_EQ(error.code(), rank_ == 0 ? PERDURE_E_INVALID : PERDURE_E_PEER_FAILED);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
