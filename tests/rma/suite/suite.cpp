// SPDX-License-Identifier: BSD-3-Clause
#include "suite.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

namespace suite {

int rank_in(MPI_Comm comm) {
  int value = 0;
  MPI_Comm_rank(comm, &value);
  return value;
}

int ranks_in(MPI_Comm comm) {
  int value = 0;
  MPI_Comm_size(comm, &value);
  return value;
}

bool forced() {
  return std::getenv("PERDURE_WINDOWS") != nullptr;
}

void WindowTest::SetUp() {
  const testing::TestInfo* test = testing::UnitTest::GetInstance()->current_test_info();
  const std::string name = std::string(test->test_suite_name()) + "." + test->name();
  if (const char* reason = known_failure(name)) GTEST_SKIP() << reason;
}

std::string name_of(Made made) {
  constexpr std::array names{"created", "allocated", "shared", "dynamic"};
  return names[static_cast<std::size_t>(made)];
}

std::string name_of(Sync sync) {
  constexpr std::array names{"fence", "post", "lock", "lock_all"};
  return names[static_cast<std::size_t>(sync)];
}

// --- cells ---------------------------------------------------------------------------------------

namespace {

// MPICH 4.0 misplaces memory of odd sizes; Making.allocated_sizes_need_not_be_round is about that.
MPI_Aint whole_lines(MPI_Aint bytes) {
  return (bytes + 63) / 64 * 64;
}

}  // namespace

Cells::Cells(std::size_t count, Made made, MPI_Comm comm) : comm_(comm), count_(count) {
  const auto bytes = static_cast<MPI_Aint>(count * sizeof(std::int64_t));
  constexpr int unit = sizeof(std::int64_t);
  if (made == Made::by_create || made == Made::by_dynamic) {
    own_.resize(count);
    base_ = own_.data();
  }
  if (made == Made::by_create) {
    MPI_Win_create(base_, bytes, unit, MPI_INFO_NULL, comm, &window_);
  } else if (made == Made::by_allocate) {
    MPI_Win_allocate(whole_lines(bytes), unit, MPI_INFO_NULL, comm, &base_, &window_);
  } else if (made == Made::by_allocate_shared) {
    MPI_Win_allocate_shared(bytes, unit, MPI_INFO_NULL, comm, &base_, &window_);
  } else {
    MPI_Win_create_dynamic(MPI_INFO_NULL, comm, &window_);
    MPI_Win_attach(window_, base_, bytes);
    MPI_Aint here = 0;
    MPI_Get_address(base_, &here);
    dynamic_at_.resize(static_cast<std::size_t>(ranks_in(comm)));
    MPI_Allgather(&here, 1, MPI_AINT, dynamic_at_.data(), 1, MPI_AINT, comm);
  }
  std::fill(begin(), end(), 0);
  MPI_Barrier(comm);
}

Cells::~Cells() {
  MPI_Barrier(comm_);
  if (!dynamic_at_.empty()) MPI_Win_detach(window_, base_);
  MPI_Win_free(&window_);
}

MPI_Aint Cells::at(int target, std::size_t cell) const {
  if (dynamic_at_.empty()) return static_cast<MPI_Aint>(cell);
  return MPI_Aint_add(dynamic_at_[static_cast<std::size_t>(target)],
                      static_cast<MPI_Aint>(cell * sizeof(std::int64_t)));
}

// --- epochs --------------------------------------------------------------------------------------

namespace {

MPI_Group all_of(MPI_Comm comm) {
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm_group(comm, &group);
  return group;
}

void post_and_start(MPI_Win window, MPI_Comm comm) {
  MPI_Group group = all_of(comm);
  MPI_Win_post(group, 0, window);
  MPI_Win_start(group, 0, window);
  MPI_Group_free(&group);
}

// What others did by passive target is certain to be seen after a lock of one's own.
void see_own_memory(MPI_Win window, MPI_Comm comm) {
  MPI_Barrier(comm);
  MPI_Win_lock(MPI_LOCK_SHARED, rank_in(comm), 0, window);
  MPI_Win_unlock(rank_in(comm), window);
}

}  // namespace

Epoch::Epoch(MPI_Win window, MPI_Comm comm, Sync sync)
    : window_(window), comm_(comm), sync_(sync) {}

void Epoch::begin() {
  if (sync_ == Sync::by_fence) {
    MPI_Win_fence(0, window_);
  } else if (sync_ == Sync::by_post) {
    post_and_start(window_, comm_);
  } else if (sync_ == Sync::by_lock) {
    MPI_Barrier(comm_);  // the owner's stores before the epoch, and its own lock, come first
    for (int target = 0; target < ranks_in(comm_); ++target) {
      MPI_Win_lock(MPI_LOCK_SHARED, target, 0, window_);
    }
  } else {
    MPI_Barrier(comm_);
    MPI_Win_lock_all(0, window_);
  }
}

void Epoch::end() {
  if (sync_ == Sync::by_fence) {
    MPI_Win_fence(MPI_MODE_NOSUCCEED, window_);  // locks may follow
  } else if (sync_ == Sync::by_post) {
    MPI_Win_complete(window_);
    MPI_Win_wait(window_);
  } else if (sync_ == Sync::by_lock) {
    for (int target = 0; target < ranks_in(comm_); ++target) MPI_Win_unlock(target, window_);
    see_own_memory(window_, comm_);
  } else {
    MPI_Win_unlock_all(window_);
    see_own_memory(window_, comm_);
  }
}

std::uint64_t seed_of_run() {
  std::uint64_t seed = std::random_device{}();
  if (const char* given = std::getenv("PERDURE_TEST_SEED")) {
    seed = std::strtoull(given, nullptr, 0);
  }
  MPI_Bcast(&seed, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (rank() == 0) std::printf("seed %llu\n", static_cast<unsigned long long>(seed));
  return seed;
}

// --- calls that are made everywhere --------------------------------------------------------------

void put(std::int64_t& value, int target, std::size_t cell, Cells& cells) {
  MPI_Put(&value, 1, MPI_INT64_T, target, cells.at(target, cell), 1, MPI_INT64_T, cells);
}

void get(std::int64_t& value, int target, std::size_t cell, Cells& cells) {
  MPI_Get(&value, 1, MPI_INT64_T, target, cells.at(target, cell), 1, MPI_INT64_T, cells);
}

int class_of(int code) {
  int found = MPI_SUCCESS;
  MPI_Error_class(code, &found);
  return found;
}

}  // namespace suite
