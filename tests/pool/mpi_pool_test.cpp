// SPDX-License-Identifier: BSD-3-Clause
//
// Pools of several ranks: one version of all of them, agreed errors, remote stores by MPI_Put.
// Run at 1, 2 and 4 ranks; every rank runs every test.
// ctest: NAME pool_mpi_test RANKS 1 2 4
#include <gtest/gtest.h>
#include <mpi.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "mpi_test.hpp"
#include "perdure/perdure_mpi.h"

namespace {

using perdure_test::rank;
using perdure_test::ranks;

class PoolOfRanks : public perdure_test::DirectoryOfRanks {
 protected:
  void SetUp() override {
    DirectoryOfRanks::SetUp();
    path_ = directory_ + "/pool";
  }
  int open(perdure_mode mode, MPI_Comm comm = MPI_COMM_WORLD,
           const perdure_options* options = nullptr) {
    if (const int code = perdure_open_mpi(comm, path_.c_str(), options, &pool_); code != 0) {
      return code;
    }
    if (const int code =
            perdure_array_open(pool_, "u", PERDURE_INT64, 1, &cells_, mode, nullptr, &u_);
        code != 0) {
      return code;
    }
    if (const int code = perdure_scalar(pool_, "iteration", &iteration_, sizeof iteration_);
        code != 0) {
      return code;
    }
    return perdure_restart(pool_, &version_);
  }
  std::int64_t* working() { return static_cast<std::int64_t*>(perdure_working(u_)); }
  const std::int64_t* consistent() {
    return static_cast<const std::int64_t*>(perdure_consistent(u_));
  }

  std::string path_;
  perdure_pool* pool_ = nullptr;
  perdure_array* u_ = nullptr;
  std::uint64_t cells_ = 1000;
  std::uint64_t iteration_ = 0;
  std::uint64_t version_ = 0;
};

TEST_F(PoolOfRanks, all_ranks_get_the_same_version_back) {
  for (const perdure_mode mode : {PERDURE_COPY, PERDURE_TWIN, PERDURE_LOG}) {
    perdure_options options{};
    options.flags = PERDURE_DISCARD;
    ASSERT_EQ(open(mode, MPI_COMM_WORLD, &options), 0) << perdure_last_error();
    for (std::int64_t v = 1; v <= 5; ++v) {
      for (std::uint64_t i = 0; i < cells_; ++i) working()[i] = v * 100 + rank();
      iteration_ = static_cast<std::uint64_t>(v);
      ASSERT_EQ(perdure_commit(pool_, &version_), 0) << perdure_last_error();
      EXPECT_EQ(version_, static_cast<std::uint64_t>(v));
    }
    perdure_close(pool_);
    iteration_ = 0;
    ASSERT_EQ(open(mode), 0) << perdure_last_error();
    EXPECT_EQ(version_, 5U);
    EXPECT_EQ(iteration_, 5U);
    EXPECT_EQ(consistent()[999], 500 + rank());
    perdure_close(pool_);
  }
}

// docs/format.md: two random words at byte 16 of the job record. The ranks agree on them by
// maximum, in which an MPI may take words of 2^63 and more for negative.
TEST_F(PoolOfRanks, every_pool_has_an_identity_of_its_own) {
  for (int i = 0; i < 8; ++i) {
    path_ = directory_ + "/pool" + std::to_string(i);
    ASSERT_EQ(open(PERDURE_COPY), 0) << perdure_last_error();
    perdure_close(pool_);
    std::ifstream record(path_ + "/job", std::ios::binary);
    std::uint64_t words[4] = {};
    record.read(reinterpret_cast<char*>(words), sizeof words);
    EXPECT_NE(words[2], 0U);
    EXPECT_NE(words[3], 0U);
  }
}

// The owner flushes what others put into its array.
TEST_F(PoolOfRanks, what_another_rank_put_is_part_of_the_version) {
  if (ranks() == 1) GTEST_SKIP() << "there is no other rank";
  ASSERT_EQ(open(PERDURE_TWIN), 0) << perdure_last_error();
  for (std::int64_t v = 1; v <= 4; ++v) {
    MPI_Win window = MPI_WIN_NULL;
    MPI_Win_create(working(), static_cast<MPI_Aint>(cells_ * 8), 8, MPI_INFO_NULL, MPI_COMM_WORLD,
                   &window);
    for (std::uint64_t i = 0; i < cells_; ++i) working()[i] = v;
    MPI_Win_fence(0, window);
    const std::int64_t mine = v * 1000 + rank();
    MPI_Put(&mine, 1, MPI_INT64_T, (rank() + 1) % ranks(), 7, 1, MPI_INT64_T, window);
    MPI_Win_fence(0, window);
    MPI_Win_free(&window);
    ASSERT_EQ(perdure_commit(pool_, &version_), 0) << perdure_last_error();
  }
  perdure_close(pool_);
  ASSERT_EQ(open(PERDURE_TWIN), 0) << perdure_last_error();
  EXPECT_EQ(version_, 4U);
  EXPECT_EQ(consistent()[7], 4000 + (rank() + ranks() - 1) % ranks());
  EXPECT_EQ(consistent()[8], 4);
  perdure_close(pool_);
}

TEST_F(PoolOfRanks, another_number_of_ranks_is_refused_by_both_numbers) {
  ASSERT_EQ(open(PERDURE_COPY), 0);
  ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  perdure_close(pool_);
  if (ranks() == 1) return;
  MPI_Comm fewer = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, rank() == ranks() - 1 ? MPI_UNDEFINED : 0, 0, &fewer);
  if (fewer != MPI_COMM_NULL) {
    EXPECT_EQ(open(PERDURE_COPY, fewer), PERDURE_E_RANKS);
    EXPECT_NE(std::string(perdure_last_error()).find(std::to_string(ranks()) + " ranks"),
              std::string::npos);
    MPI_Comm_free(&fewer);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ASSERT_EQ(open(PERDURE_COPY), 0) << perdure_last_error();
  EXPECT_EQ(version_, 1U);
  perdure_close(pool_);
}

TEST_F(PoolOfRanks, a_restored_version_is_that_of_all_ranks) {
  perdure_options options{};
  options.keep = 3;
  ASSERT_EQ(open(PERDURE_TWIN, MPI_COMM_WORLD, &options), 0) << perdure_last_error();
  for (std::int64_t v = 1; v <= 4; ++v) {
    for (std::uint64_t i = 0; i < cells_; ++i) working()[i] = v * 100 + rank();
    iteration_ = static_cast<std::uint64_t>(v);
    ASSERT_EQ(perdure_commit(pool_, nullptr), 0) << perdure_last_error();
  }
  ASSERT_EQ(perdure_restore(pool_, 2), 0) << perdure_last_error();
  EXPECT_EQ(consistent()[999], 200 + rank());
  EXPECT_EQ(iteration_, 2U);
  perdure_close(pool_);
  ASSERT_EQ(open(PERDURE_TWIN), 0) << perdure_last_error();
  EXPECT_EQ(version_, 2U);
  ASSERT_EQ(perdure_commit(pool_, &version_), 0) << perdure_last_error();
  EXPECT_EQ(version_, 5U);
  ASSERT_EQ(perdure_delete_version(pool_, 4), 0) << perdure_last_error();
  // One rank asks for another version: an error of all, and nothing is changed.
  const int code = perdure_restore(pool_, rank() == 0 ? 4 : 5);
  EXPECT_EQ(code, ranks() == 1 ? PERDURE_E_NOT_FOUND : PERDURE_E_INVALID);
  perdure_version_info versions[3];
  std::size_t count = 0;
  ASSERT_EQ(perdure_versions(pool_, versions, 3, &count), 0);
  ASSERT_EQ(count, 2U);
  EXPECT_EQ(versions[0].version, 5U);
  EXPECT_EQ(versions[0].parent, 2U);
  EXPECT_EQ(versions[1].version, 3U);
  perdure_close(pool_);
}

TEST_F(PoolOfRanks, different_numbers_of_versions_are_an_error_of_all) {
  if (ranks() == 1) GTEST_SKIP() << "there is no other rank";
  perdure_options options{};
  options.keep = rank() == 0 ? 2 : 3;
  EXPECT_EQ(open(PERDURE_COPY, MPI_COMM_WORLD, &options), PERDURE_E_INVALID);
  EXPECT_FALSE(std::filesystem::exists(path_));
}

// A rank that discards, or has levels, makes exchanges in which the others have no part: they were
// taken for others of theirs, or waited for without end.
TEST_F(PoolOfRanks, different_ways_of_opening_are_refused_on_all_and_leave_the_pool_as_it_is) {
  if (ranks() == 1) GTEST_SKIP() << "there is no other rank";
  ASSERT_EQ(open(PERDURE_COPY), 0) << perdure_last_error();
  std::uint64_t version = 0;
  ASSERT_EQ(perdure_commit(pool_, &version), 0);
  perdure_close(pool_);
  const std::string drain = "drain=" + path_ + "-drain";
  perdure_options discards{};
  discards.flags = PERDURE_DISCARD;
  perdure_options drains{};
  drains.levels = drain.c_str();
  perdure_options seldom{};
  seldom.levels = "every=7";
  const perdure_options usual{};
  for (const perdure_options* const other : {&discards, &drains, &seldom}) {
    for (const int different : {0, ranks() - 1}) {
      const perdure_options* const own = rank() == different ? other : &usual;
      EXPECT_EQ(perdure_open_mpi(MPI_COMM_WORLD, path_.c_str(), own, &pool_), PERDURE_E_INVALID);
      EXPECT_NE(std::string(perdure_last_error()).find("in different ways"), std::string::npos)
          << perdure_last_error();
    }
  }
  ASSERT_EQ(open(PERDURE_COPY), 0) << perdure_last_error();
  perdure_pool_status status{};
  ASSERT_EQ(perdure_status(pool_, &status), 0);
  EXPECT_EQ(status.version, version);
  perdure_close(pool_);
}

TEST_F(PoolOfRanks, an_error_of_one_rank_is_an_error_of_all) {
  perdure_options options{};
  options.copy_threads = rank() == ranks() - 1 ? 1000 : 1;  // the last rank is wrong
  const int code = perdure_open_mpi(MPI_COMM_WORLD, path_.c_str(), &options, &pool_);
  if (rank() == ranks() - 1) {
    EXPECT_EQ(code, PERDURE_E_INVALID);
  } else {
    EXPECT_EQ(code, PERDURE_E_PEER_FAILED);
    EXPECT_NE(std::string(perdure_last_error()).find("rank " + std::to_string(ranks() - 1)),
              std::string::npos);
  }
  ASSERT_EQ(perdure_open_mpi(MPI_COMM_WORLD, path_.c_str(), nullptr, &pool_), 0);
  EXPECT_EQ(perdure_commit(pool_, nullptr), PERDURE_E_STATE);  // before restart, on all
  perdure_close(pool_);
  ASSERT_EQ(open(PERDURE_COPY), 0) << perdure_last_error();
  perdure_close(pool_);
}

TEST_F(PoolOfRanks, a_missing_or_swapped_rank_file_is_an_error_of_all) {
  if (ranks() == 1) return;
  ASSERT_EQ(open(PERDURE_COPY), 0);
  ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  perdure_close(pool_);
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string zero = path_ + "/rank-00000";
  const std::string one = path_ + "/rank-00001";
  if (rank() == 0) std::filesystem::rename(zero, directory_ + "/away");
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(open(PERDURE_COPY), rank() == 0 ? PERDURE_E_NOT_FOUND : PERDURE_E_PEER_FAILED);
  if (rank() == 0) {
    std::filesystem::rename(one, zero);
    std::filesystem::rename(directory_ + "/away", one);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(open(PERDURE_COPY), rank() < 2 ? PERDURE_E_FOREIGN : PERDURE_E_PEER_FAILED);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    std::filesystem::rename(zero, directory_ + "/away");
    std::filesystem::rename(one, zero);
    std::filesystem::rename(directory_ + "/away", one);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  ASSERT_EQ(open(PERDURE_COPY), 0) << perdure_last_error();
  EXPECT_EQ(version_, 1U);
  perdure_close(pool_);
}

TEST_F(PoolOfRanks, a_stale_copy_of_a_rank_file_is_an_error) {
  if (ranks() == 1) return;
  ASSERT_EQ(open(PERDURE_TWIN), 0);
  ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  const std::string file = path_ + "/rank-00001";
  if (rank() == 0) std::filesystem::copy_file(file, directory_ + "/old");
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) ASSERT_EQ(perdure_commit(pool_, nullptr), 0);
  perdure_close(pool_);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    std::filesystem::copy_file(directory_ + "/old", file,
                               std::filesystem::copy_options::overwrite_existing);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const int code = open(PERDURE_TWIN);
  EXPECT_TRUE(code == PERDURE_E_DAMAGED || code == PERDURE_E_PEER_FAILED) << code;
}

}  // namespace

int main(int argc, char** argv) {
  return perdure_test::run_tests(argc, argv);
}
