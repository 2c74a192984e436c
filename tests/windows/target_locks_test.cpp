// SPDX-License-Identifier: BSD-3-Clause
//
// The locks under which accumulates are made: one holder at a time, in whichever process, and
// nobody waits for the dead.
// ctest: RANKS 2 LIBS perdure_rma_words_@_layer Threads::Threads
#include "rma/target_locks.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>
#include <vector>

#include "mpi/machine_memory.hpp"
#include "mpi_test.hpp"

namespace perdure {
namespace {

using perdure_test::rank;
using perdure_test::ranks;

// A number that is read and written in two steps loses nothing.
TEST(TargetLocks, one_thread_of_one_rank_holds_a_lock) {
  constexpr int rounds = 20000;
  constexpr int threads = 2;
  const auto locks = TargetLocks::create(MPI_COMM_WORLD);
  const auto memory = share_memory(MPI_COMM_WORLD, sizeof(long) * 2);
  ASSERT_TRUE(locks != nullptr && memory != nullptr);
  auto* numbers = reinterpret_cast<volatile long*>(memory.get());
  std::vector<std::thread> working;
  for (int i = 0; i < threads; ++i) {
    working.emplace_back([&locks, numbers] {
      for (int round = 0; round < rounds; ++round) {
        const auto target = static_cast<std::size_t>(round % 2);
        locks->lock(target);
        const long before = numbers[target];
        numbers[target] = before + 1;
        locks->unlock(target);
      }
    });
  }
  for (std::thread& each : working) each.join();
  MPI_Barrier(MPI_COMM_WORLD);
  EXPECT_EQ(numbers[0], rounds / 2 * threads * ranks());
  EXPECT_EQ(numbers[1], rounds / 2 * threads * ranks());
}

TEST(TargetLocks, a_lock_of_the_dead_is_there_for_the_next) {
  const auto locks = TargetLocks::create(MPI_COMM_WORLD);
  ASSERT_NE(locks, nullptr);
  if (rank() == 0) {
    const pid_t child = ::fork();
    if (child == 0) {
      locks->lock(1);
      ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 3; ++i) {
    locks->lock(1);
    locks->unlock(1);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  // And one rank holds it at a time.
  const auto memory = share_memory(MPI_COMM_WORLD, sizeof(std::atomic<int>));
  ASSERT_NE(memory, nullptr);
  auto& taken = *reinterpret_cast<std::atomic<int>*>(memory.get());
  if (rank() == 0) locks->lock(1);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank() == 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(taken.load(), 0);
  } else {
    locks->lock(1);
    taken = 1;
  }
  locks->unlock(1);
  MPI_Barrier(MPI_COMM_WORLD);
}

}  // namespace
}  // namespace perdure

int main(int argc, char** argv) {
  int level = MPI_THREAD_SINGLE;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &level);
  testing::InitGoogleTest(&argc, argv);
  return perdure_test::run_tests();
}
