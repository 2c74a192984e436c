// SPDX-License-Identifier: BSD-3-Clause
//
// Process barrier: the litmus test "store buffering" between two processes, one of which has the
// barrier and the other no fence at all. With a fence on neither side a run of the
// test finds some dozen rounds in which neither saw the other.
#include "base/process_barrier.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include <atomic>
#include <cstdint>

namespace perdure {
namespace {

struct Litmus {
  alignas(64) std::atomic<std::uint32_t> x{0};
  alignas(64) std::atomic<std::uint32_t> y{0};
  alignas(64) std::atomic<std::uint32_t> round{0};
  alignas(64) std::atomic<std::uint32_t> answered{0};
  alignas(64) std::uint32_t seen_y{0};
};

void await(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  for (unsigned looks = 1; word.load(std::memory_order_acquire) != value; ++looks) {
    if (looks % 1024 == 0) ::sched_yield();
  }
}

// In each round, stores x and looks at y with nothing between that the processor would heed.
void answer_rounds(Litmus& litmus, std::uint32_t rounds) {
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    await(litmus.round, round);
    litmus.x.store(round, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    litmus.seen_y = litmus.y.load(std::memory_order_relaxed);
    litmus.answered.store(round, std::memory_order_release);
  }
}

TEST(ProcessBarrier, stands_for_the_fence_of_another_process) {
  if (!join_process_barriers()) GTEST_SKIP() << "this kernel has no process barriers";
  void* memory =
      ::mmap(nullptr, sizeof(Litmus), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  auto& litmus = *new (memory) Litmus;
  constexpr std::uint32_t rounds = 50'000;
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (!join_process_barriers()) ::_exit(1);
    answer_rounds(litmus, rounds);
    ::_exit(0);
  }
  std::uint32_t neither = 0;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    litmus.round.store(round, std::memory_order_release);
    litmus.y.store(round, std::memory_order_relaxed);
    ASSERT_TRUE(process_barrier());
    const std::uint32_t seen_x = litmus.x.load(std::memory_order_relaxed);
    await(litmus.answered, round);
    if (seen_x != round && litmus.seen_y != round) ++neither;
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(neither, 0U);
  ::munmap(memory, sizeof(Litmus));
}

}  // namespace
}  // namespace perdure
