// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of ranks share: which rank this is, a directory for all of them, and a main function
// whose exit code is the same on every rank. Every rank runs every test; assertions are per rank.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace perdure_test {

inline int of_world(int (*call)(MPI_Comm, int*)) {
  int value = 0;
  call(MPI_COMM_WORLD, &value);
  return value;
}
inline int rank() {
  return of_world(MPI_Comm_rank);
}
inline int ranks() {
  return of_world(MPI_Comm_size);
}
inline int right() {
  return (rank() + 1) % ranks();
}
inline int left() {
  return (rank() + ranks() - 1) % ranks();
}

// One directory for all ranks, made by rank 0.
class DirectoryOfRanks : public testing::Test {
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

  int rank_ = rank();
  std::string directory_;
};

// After MPI_Init and InitGoogleTest: 1 on all ranks if a test failed on any.
inline int run_tests() {
  const int failed = RUN_ALL_TESTS();
  int any = 0;
  MPI_Allreduce(&failed, &any, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  MPI_Finalize();
  return any;
}
inline int run_tests(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  testing::InitGoogleTest(&argc, argv);
  return run_tests();
}

}  // namespace perdure_test
