// SPDX-License-Identifier: BSD-3-Clause
//
// What the tests of one-sided communication share: ranks, windows of cells, epochs, and the list of
// what an MPI itself gets wrong.
//
// The suite is plain MPI: it knows nothing of Perdure; only PERDURE_WINDOWS says whether
// its windows were made persistent. Every rank runs every test. Calls keep MPI's default error
// handlers, so an unexpected error ends the job; tests use EXPECT and not ASSERT, because a rank
// that left a test early would leave the others waiting.
//
// Whatever ends an epoch may be made to commit, and commits are collective. So all ranks end
// equally many epochs of a kind; a test where they can't says rules_of_commits_forbid().
#ifndef PERDURE_TESTS_RMA_SUITE_HPP
#define PERDURE_TESTS_RMA_SUITE_HPP

#include <gtest/gtest.h>
#include <mpi.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace suite {

int rank_in(MPI_Comm comm);
int ranks_in(MPI_Comm comm);
inline int rank() {
  return rank_in(MPI_COMM_WORLD);
}
inline int ranks() {
  return ranks_in(MPI_COMM_WORLD);
}
inline int next() {
  return (rank() + 1) % ranks();
}
inline int previous() {
  return (rank() + ranks() - 1) % ranks();
}
inline void barrier() {
  MPI_Barrier(MPI_COMM_WORLD);
}

// Of a random test, the same on all ranks, and printed: PERDURE_TEST_SEED, or a new one.
std::uint64_t seed_of_run();

// The environment makes windows persistent, and epochs commit.
bool forced();

// A test that all ranks skip if the MPI that runs it is known to fail it (known_failures.cpp).
class WindowTest : public testing::Test {
 protected:
  void SetUp() override;
};

enum class Made { by_create, by_allocate, by_allocate_shared, by_dynamic };
enum class Sync { by_fence, by_post, by_lock, by_lock_all };
std::string name_of(Made made);
std::string name_of(Sync sync);

// A window of `count` 64-bit cells on every rank of `comm`, all zero, made in one of the four ways.
// Construction and destruction are collective; on return the cells of all ranks are zero.
class Cells {
 public:
  explicit Cells(std::size_t count, Made made = Made::by_allocate, MPI_Comm comm = MPI_COMM_WORLD);
  ~Cells();
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  operator MPI_Win() const { return window_; }
  MPI_Comm comm() const { return comm_; }
  std::int64_t& operator[](std::size_t cell) { return base_[cell]; }
  std::int64_t* begin() { return base_; }
  std::int64_t* end() { return base_ + count_; }
  // The displacement of a cell of `target`; for a dynamic window an address.
  MPI_Aint at(int target, std::size_t cell) const;

 private:
  MPI_Comm comm_;
  MPI_Win window_ = MPI_WIN_NULL;
  std::size_t count_;
  std::int64_t* base_ = nullptr;
  std::vector<std::int64_t> own_;     // the memory of windows that don't bring theirs
  std::vector<MPI_Aint> dynamic_at_;  // by rank; empty if displacements are in cells
};

// An epoch in which every rank may access every rank of the window, begun and ended by all of them.
// After end() every rank sees in its own memory what others did to it.
class Epoch {
 public:
  Epoch(MPI_Win window, MPI_Comm comm, Sync sync);
  void begin();
  void end();

 private:
  MPI_Win window_;
  MPI_Comm comm_;
  Sync sync_;
};

void put(std::int64_t& value, int target, std::size_t cell, Cells& cells);
void get(std::int64_t& value, int target, std::size_t cell, Cells& cells);
int class_of(int code);  // MPI's error class of an error code

// --- what is known to fail -----------------------------------------------------------------------

struct KnownFailure {
  const char* version_text;  // what MPI_Get_library_version must contain
  const char* test;          // a GoogleTest pattern with *
  int ranks;                 // only with so many; 0: with any number
  const char* reason;
};
const std::vector<KnownFailure>& known_failures();
// The reason for which this MPI is not asked to run the test, or nullptr.
const char* known_failure(const std::string& test);

// Skips a test whose ranks don't end equally many epochs when every epoch commits.
#define PERDURE_RULES_OF_COMMITS_FORBID(what) \
  if (suite::forced()) GTEST_SKIP() << "not with epochs that commit: " << (what)

}  // namespace suite
#endif
