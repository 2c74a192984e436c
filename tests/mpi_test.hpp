// SPDX-License-Identifier: BSD-3-Clause
//
// What tests of ranks share: which rank this is, a directory for all of them, and a main function
// whose exit code is the same on every rank. Every rank runs every test; assertions are per rank.
#pragma once

#include <gtest/gtest.h>
#include <mpi.h>

#include <climits>
#include <memory>
#include <string>

#include "temporary_directory.hpp"

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
    if (rank_ == 0) made_ = std::make_unique<TemporaryDirectory>();
    char path[PATH_MAX] = "";
    if (rank_ == 0) made_->path().copy(path, sizeof path - 1);
    MPI_Bcast(path, sizeof path, MPI_CHAR, 0, MPI_COMM_WORLD);
    directory_ = path;
  }
  void TearDown() override {
    MPI_Barrier(MPI_COMM_WORLD);
    made_.reset();
  }

  int rank_ = rank();
  std::string directory_;

 private:
  std::unique_ptr<TemporaryDirectory> made_;  // of rank 0
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
