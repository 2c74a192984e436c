// SPDX-License-Identifier: BSD-3-Clause
//
// perdure_mpi.hpp: a pool of all ranks. Run at 1 and 2 ranks; every rank runs every test.
#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include "perdure/perdure_mpi.hpp"

namespace {

int rank_of_world() {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return rank;
}

// One directory for all ranks, made by rank 0.
class PoolOfRanks : public testing::Test {
 protected:
  void SetUp() override {
    char pattern[64] = "/dev/shm/perdure-test-XXXXXX";
    if (rank_ == 0 && ::mkdtemp(pattern) == nullptr) std::abort();
    MPI_Bcast(pattern, sizeof pattern, MPI_CHAR, 0, MPI_COMM_WORLD);
    directory_ = pattern;
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank_ == 0) std::filesystem::remove_all(directory_);
  }
  perdure::Pool open() const { return perdure::open_mpi(MPI_COMM_WORLD, directory_ + "/pool"); }

  int rank_ = rank_of_world();
  std::string directory_;
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
  auto pool = open();
  const perdure::Shape shape{rank_ == 0 ? 1ULL << 60 : 10U};  // rank 0 is wrong
  try {
    pool.array<double>("u", shape, perdure::Mode::copy);
    FAIL() << "no error";
  } catch (const perdure::Error& error) {
    EXPECT_EQ(error.code(), rank_ == 0 ? PERDURE_E_INVALID : PERDURE_E_PEER_FAILED);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  const int failed = RUN_ALL_TESTS();
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
