// SPDX-License-Identifier: BSD-3-Clause
//
// Tokens between processes: never too many, first come first served, and no dead holder in the way.
#include "energy/tokens.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <thread>
#include <vector>

namespace perdure::energy {
namespace {

constexpr std::uint32_t patient_ms = 60'000;

// What the processes of a test share.
struct Board {
  std::atomic<int> holding{0};
  std::atomic<int> most{0};
  std::atomic<int> entered{0};
  std::atomic<int> order[64];
};

class Tokens : public testing::Test {
 protected:
  Tokens()
      : path_("/dev/shm/perdure-token-test-" + std::to_string(::getpid())),
        board_(new(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE,
                          MAP_SHARED | MAP_ANONYMOUS, -1, 0)) Board) {}
  ~Tokens() override {
    ::munmap(board_, sizeof(Board));
    std::filesystem::remove(path_);
  }

  template <typename Body>
  pid_t start(const Body& body) {
    const pid_t child = ::fork();
    if (child != 0) return child;
    WriterTokens tokens(path_, false);
    body(tokens);
    ::_exit(0);  // without the destructors of the test
  }
  static void wait_for(pid_t child) { EXPECT_EQ(::waitpid(child, nullptr, 0), child); }
  template <typename Condition>
  static void await(const Condition& condition) {
    while (!condition()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

  // As tokens.hpp says: byte 2^20 + t is locked while ticket t waits.
  void await_ticket(int ticket) const {
    const int fd = ::open(path_.c_str(), O_RDWR | O_CLOEXEC);
    await([&] {
      struct flock lock{};
      lock.l_type = F_WRLCK;
      lock.l_start = (1 << 20) + ticket;
      lock.l_len = 1;
      return ::fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
    });
    ::close(fd);
  }

  std::string path_;
  Board* board_;
};

TEST_F(Tokens, are_never_more_than_the_limit) {
  std::vector<pid_t> children;
  for (int i = 0; i < 6; ++i) {
    children.push_back(start([&](WriterTokens& tokens) {
      for (int round = 0; round < 20; ++round) {
        if (!tokens.acquire(2, patient_ms)) ::_exit(1);
        const int now = ++board_->holding;
        int most = board_->most;
        while (now > most && !board_->most.compare_exchange_weak(most, now)) {
        }
        ::usleep(200);
        --board_->holding;
        tokens.release();
        ++board_->entered;
      }
    }));
  }
  for (const pid_t child : children) wait_for(child);
  EXPECT_EQ(board_->entered, 120);
  EXPECT_EQ(board_->most, 2);
}

TEST_F(Tokens, are_given_in_the_order_of_asking) {
  WriterTokens first(path_, false);
  ASSERT_TRUE(first.acquire(1, patient_ms));
  constexpr int waiters = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < waiters; ++i) {
    children.push_back(start([&, i](WriterTokens& tokens) {
      if (!tokens.acquire(1, patient_ms)) ::_exit(1);
      board_->order[board_->entered++] = i;
      tokens.release();
    }));
    await_ticket(i + 1);  // ticket 0 was the holder's
  }
  first.release();
  for (const pid_t child : children) wait_for(child);
  for (int i = 0; i < waiters; ++i) EXPECT_EQ(board_->order[i], i);
}

TEST_F(Tokens, of_a_killed_holder_are_free_and_so_is_the_place_of_a_killed_waiter) {
  const pid_t holder = start([&](WriterTokens& tokens) {
    tokens.acquire(1, patient_ms);
    ++board_->entered;
    ::pause();
  });
  await([&] { return board_->entered == 1; });
  const pid_t waiter = start([&](WriterTokens& tokens) { tokens.acquire(1, patient_ms); });
  await_ticket(1);
  const pid_t last =
      start([&](WriterTokens& tokens) { ::_exit(tokens.acquire(1, patient_ms) ? 0 : 1); });
  ::kill(waiter, SIGKILL);
  ::kill(holder, SIGKILL);
  wait_for(waiter);
  wait_for(holder);
  int status = -1;
  ::waitpid(last, &status, 0);
  EXPECT_EQ(status, 0);
}

TEST_F(Tokens, are_gone_without_after_a_while) {
  WriterTokens holder(path_, false);
  ASSERT_TRUE(holder.acquire(1, patient_ms));
  WriterTokens other(path_, false);
  EXPECT_FALSE(other.acquire(1, 50));
  EXPECT_EQ(other.counters().went_ahead, 1U);
  EXPECT_NE(other.counters().reason.find("50 ms"), std::string::npos);
  other.release();  // of nothing
  holder.release();
  EXPECT_TRUE(other.acquire(1, patient_ms));
}

TEST_F(Tokens, are_waited_for_asleep) {
  WriterTokens holder(path_, false);
  ASSERT_TRUE(holder.acquire(1, patient_ms));
  const pid_t waiter = start([&](WriterTokens& tokens) { tokens.acquire(1, 2'000); });
  rusage usage{};
  ASSERT_EQ(::wait4(waiter, nullptr, 0, &usage), waiter);
  const double cpu_s = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                       static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
  EXPECT_LT(cpu_s, 0.2);  // of 2 s; a spin takes all of them
}

TEST_F(Tokens, leave_no_file_after_the_last_user) {
  {
    WriterTokens one(path_, false);
    WriterTokens two(path_, false);
    ASSERT_TRUE(one.acquire(2, patient_ms));
    ASSERT_TRUE(two.acquire(2, patient_ms));
    EXPECT_TRUE(std::filesystem::exists(path_));
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

TEST_F(Tokens, of_a_job_that_was_killed_whole_are_removed_by_the_next_one) {
  ::setenv("SLURM_JOB_ID", "4711", 1);
  WriterTokens of_job("sda");
  ::unsetenv("SLURM_JOB_ID");
  const std::string path = of_job.path();
  const pid_t child = ::fork();
  if (child == 0) {
    of_job.acquire(1, patient_ms);
    ::raise(SIGKILL);
  }
  wait_for(child);
  EXPECT_TRUE(std::filesystem::exists(path));
  EXPECT_GE(remove_unused_tokens(), 1U);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(Tokens, in_a_place_that_cannot_be_used_are_done_without) {
  WriterTokens tokens("/nowhere/tokens", false);
  EXPECT_FALSE(tokens.acquire(1, patient_ms));
  EXPECT_NE(tokens.counters().reason.find("/nowhere does not exist"), std::string::npos);
}

TEST_F(Tokens, survive_the_coming_and_going_of_the_file) {
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(start([&](WriterTokens&) {
      for (int round = 0; round < 200; ++round) {
        WriterTokens tokens(path_, false);
        if (!tokens.acquire(1, patient_ms)) ::_exit(1);
        if (++board_->holding != 1) ::_exit(2);
        --board_->holding;
        tokens.release();
      }
    }));
  }
  for (const pid_t child : children) {
    int status = -1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_FALSE(std::filesystem::exists(path_));
}

}  // namespace
}  // namespace perdure::energy
