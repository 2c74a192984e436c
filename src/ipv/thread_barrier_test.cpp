// SPDX-License-Identifier: BSD-3-Clause
//
// Thread barrier: the litmus test "store buffering" between two threads, one of which has the
// barrier and the other no fence at all. The one without comes to its processor in the way that
// thread_barrier.hpp describes, and stores to lines that are not in the cache before, so that its
// store is on the way for longer than a barrier takes that does nothing: of such barriers an
// attempt on an idle machine finds some rounds in which neither saw the other. On a busy machine
// few processors are idle, so there are several attempts, each a process of its own.
// ctest: SERIAL
#include "ipv/thread_barrier.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>
#include <vector>

namespace perdure {
namespace {

constexpr std::uint32_t rounds = 1500;
constexpr std::size_t line_bytes = 64;
constexpr int both_unseen = 1, no_barrier = 2, not_placed = 3;  // exit codes of an attempt

struct Litmus {
  alignas(line_bytes) std::atomic<std::uint32_t> x{0};
  alignas(line_bytes) std::atomic<std::uint32_t> y{0};
  alignas(line_bytes) std::atomic<std::uint32_t> round{0};
  alignas(line_bytes) std::atomic<std::uint32_t> answered{0};
  alignas(line_bytes) std::uint32_t seen_x{0};
};

void await(const std::atomic<std::uint32_t>& word, std::uint32_t value) {
  for (unsigned looks = 1; word.load(std::memory_order_acquire) != value; ++looks) {
    if (looks % 1024 == 0) ::sched_yield();
  }
}

bool run_on(std::size_t processor) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(processor, &one);
  return ::sched_setaffinity(0, sizeof one, &one) == 0;
}

std::vector<std::size_t> processors_allowed() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<std::size_t> all;
  if (::sched_getaffinity(0, sizeof allowed, &allowed) != 0) return all;
  for (std::size_t i = 0; i < CPU_SETSIZE; ++i) {
    if (CPU_ISSET(i, &allowed)) all.push_back(i);
  }
  return all;
}

void answer_with_barriers(Litmus& litmus) {
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    await(litmus.round, round);
    litmus.y.store(round, std::memory_order_relaxed);
    if (!thread_barrier()) ::_exit(no_barrier);
    litmus.seen_x = litmus.x.load(std::memory_order_relaxed);
    litmus.answered.store(round, std::memory_order_release);
  }
}

// In each round, stores x and looks at y with nothing between that the processor would heed.
std::uint32_t rounds_unseen(Litmus& litmus, std::vector<unsigned char>& cold) {
  std::uint32_t neither = 0;
  std::uint64_t drawn = 1;
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    litmus.round.store(round, std::memory_order_release);
    for (std::uint32_t wait = round * 7 % 400; wait > 0; --wait) {
      std::atomic_signal_fence(std::memory_order_seq_cst);
    }
    for (int store = 0; store < 24; ++store) {
      drawn = drawn * 6364136223846793005U + 1442695040888963407U;
      cold[(drawn >> 33) % (cold.size() / line_bytes) * line_bytes] = 1;
    }
    litmus.x.store(round, std::memory_order_relaxed);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    const std::uint32_t seen_y = litmus.y.load(std::memory_order_relaxed);
    await(litmus.answered, round);
    if (seen_y != round && litmus.seen_x != round) ++neither;
  }
  return neither;
}

int attempt(std::size_t here, std::size_t there, std::vector<unsigned char>& cold) {
  Litmus litmus;
  if (!run_on(here) || !run_on(there)) return not_placed;
  if (!join_thread_barriers()) return no_barrier;
  if (!run_on(here)) return not_placed;
  std::thread other([&] {
    if (!run_on(there)) ::_exit(not_placed);
    answer_with_barriers(litmus);
  });
  const std::uint32_t neither = rounds_unseen(litmus, cold);
  other.join();
  return neither == 0 ? 0 : both_unseen;
}

TEST(ThreadBarrier, stands_for_the_fence_of_another_thread) {
  const auto processors = processors_allowed();
  if (processors.size() < 2) GTEST_SKIP() << "one processor has no barriers to keep";
  if (!thread_barrier() && errno != EPERM) GTEST_SKIP() << "this kernel has no thread barriers";
  std::vector<unsigned char> cold(std::size_t{32} << 20, 1);
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) ::_exit(attempt(processors[1], processors[0], cold));
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0) << "attempt " << i;
  }
}

}  // namespace
}  // namespace perdure
