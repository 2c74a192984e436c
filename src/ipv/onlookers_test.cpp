// SPDX-License-Identifier: BSD-3-Clause
//
// Each of ipv.O1 to ipv.O7; tests/ipv/readers.py has programs. ipv.O8 and what MPI_Init
// brings along need an MPI library, as there.
// ctest: LABELS truth
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/guests.hpp"
#include "base/this_thread.hpp"
#include "ipv/onlookers.hpp"

namespace perdure {
namespace {

constexpr std::uintptr_t low = 0x10000;
constexpr std::uintptr_t high = 0x20000;

std::string look() {
  return Onlookers().may_look(low, high);
}

bool says(const std::string& answer, const char* words) {
  return answer.find(words) != std::string::npos;
}

// In a process of its own, as what is found stays. 0: all was as it should be.
template <typename Use>
int in_a_child(const Use& use) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(use() ? 0 : 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100;
}

TEST(Onlookers, are_none_in_a_process_that_is_alone) {
  EXPECT_EQ(look(), "");
}

TEST(Onlookers, are_threads_of_the_programs_while_they_live) {
  std::atomic<bool> ends{false};
  std::thread thread([&] { ends.wait(false); });
  EXPECT_TRUE(says(look(), "other threads"));
  ends = true;
  ends.notify_all();
  thread.join();
  // The kernel lists a thread for a moment longer than it lives.
  for (int i = 0; i < 10'000 && !look().empty(); ++i) ::usleep(1000);
  EXPECT_EQ(look(), "");
}

TEST(Onlookers, are_not_perdures_own_threads) {
  std::atomic<int> state{0};
  std::thread thread([&] {
    leave_signals_to_others();
    state = 1;
    state.notify_all();
    state.wait(1);
  });
  state.wait(0);
  EXPECT_EQ(look(), "");
  std::thread other([&] { state.wait(1); });
  EXPECT_TRUE(says(look(), "other threads"));
  state = 2;
  state.notify_all();
  thread.join();
  other.join();
}

// Else a box would be refused, or not, by how soon the kernel runs them.
TEST(Onlookers, are_not_perdures_own_threads_that_have_just_been_started) {
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 50; ++i) {
    threads.push_back(start_own_thread([&] { ends.wait(false); }));
    EXPECT_EQ(look(), "") << "thread " << i;
  }
  ends = true;
  ends.notify_all();
  for (std::thread& thread : threads) thread.join();
}

// Such a process is none of this one's threads.
TEST(Onlookers, are_processes_that_share_the_memory) {
  std::vector<char> stack(1 << 16);
  static std::atomic<int> ends{0};
  const pid_t child = ::clone(
      [](void*) {
        while (ends == 0) ::sched_yield();
        return 0;
      },
      stack.data() + stack.size(), CLONE_VM | SIGCHLD, nullptr);
  ASSERT_GT(child, 0);
  const std::string found = look();
  ends = 1;
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(says(found, "other threads")) << found;
}

TEST(Onlookers, are_handlers_of_any_signal_in_the_programs_code) {
  for (const int signal : {SIGALRM, SIGTERM, SIGUSR1, SIGFPE, SIGRTMIN + 3}) {
    EXPECT_EQ(in_a_child([&] {
                struct sigaction action{};
                // In another library than Perdure's, as a program's is.
                action.sa_handler = &::_exit;
                ::sigaction(signal, &action, nullptr);
                return says(look(), ("signal " + std::to_string(signal)).c_str());
              }),
              0)
        << signal;
  }
}

TEST(Onlookers, are_no_handlers_that_the_mpi_library_installed) {
  EXPECT_EQ(in_a_child([] {
              const ProcessGuests before = ProcessGuests::now();
              struct sigaction action{};
              action.sa_handler = &::_exit;
              ::sigaction(SIGUSR2, &action, nullptr);
              note_mpi_begun(before, [](const void*) { return false; });
              if (!look().empty()) return false;
              action.sa_handler = &::exit;
              ::sigaction(SIGUSR2, &action, nullptr);
              return says(look(), "signal 12");
            }),
            0);
}

TEST(Onlookers, are_tracers) {
  EXPECT_EQ(in_a_child([] {
              ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
              return says(look(), "traces");
            }),
            0);
}

TEST(Onlookers, are_rings_of_io_uring) {
  EXPECT_EQ(in_a_child([] {
              std::array<char, 120> parameters{};
              const long ring = ::syscall(SYS_io_uring_setup, 4, parameters.data());
              if (ring < 0) return true;  // the machine has none
              return says(look(), "io_uring");
            }),
            0);
}

TEST(Onlookers, are_contexts_of_asynchronous_io) {
  EXPECT_EQ(in_a_child([] {
              unsigned long context = 0;
              if (::syscall(SYS_io_setup, 4, &context) != 0) return true;
              if (!says(look(), "asynchronous I/O")) return false;
              ::syscall(SYS_io_destroy, context);
              return look().empty();
            }),
            0);
}

TEST(Onlookers, are_those_to_whom_a_byte_was_lent_and_for_good) {
  EXPECT_EQ(in_a_child([] {
              lend(low - 64, low);
              lend(high, high + 64);
              if (!look().empty()) return false;
              lend(high - 1, high);
              return says(look(), "given to MPI");
            }),
            0);
  EXPECT_EQ(in_a_child([] {
              lend_all();
              return says(look(), "given to MPI");
            }),
            0);
}

// However many there are, none is forgotten.
TEST(Onlookers, are_found_among_more_ranges_than_are_kept) {
  EXPECT_EQ(in_a_child([] {
              for (std::uintptr_t i = 0; i < 1000; ++i) lend(high + i * 4096, high + i * 4096 + 8);
              lend(low + 8, low + 16);
              for (std::uintptr_t i = 0; i < 1000; ++i) {
                if (!is_lent(high + i * 4096, high + i * 4096 + 1)) return false;
              }
              return is_lent(low, high) && !is_lent(low - 8, low);
            }),
            0);
}

}  // namespace
}  // namespace perdure
