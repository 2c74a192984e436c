// SPDX-License-Identifier: BSD-3-Clause
//
// What the ranks of one machine say of commits that others do not come to. The ranks are lines of
// memory here, and whoever speaks writes into a pipe in place of stderr.
#include "base/commit_watch.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>

namespace perdure {
namespace {

constexpr std::uint64_t ms = 1'000'000;

class CommitWatchTest : public testing::Test {
 protected:
  CommitWatchTest() : before_(::dup(STDERR_FILENO)) {
    EXPECT_EQ(::pipe(ends_.data()), 0);
    ::dup2(ends_[1], STDERR_FILENO);
    for (std::size_t i = 0; i < lines_.size(); ++i) lines_[i].rank = 10 + i;
  }
  ~CommitWatchTest() override {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(ends_[0]);
    ::close(ends_[1]);
  }

  std::unique_ptr<CommitWatch> watch_of(std::uint32_t own, std::uint32_t ranks = 3) {
    CommitLines lines;
    lines.first = {lines_.data(), [](CommitLine*) {}};
    lines.count = 3;
    lines.own = own;
    lines.ranks = ranks;
    return std::make_unique<CommitWatch>("/pool", CommitPatience{50 * ms, 0}, lines);
  }
  // Waits until somebody says something.
  std::string said() const {
    std::array<char, 1000> text{};
    const ssize_t bytes = ::read(ends_[0], text.data(), text.size());
    return {text.data(), static_cast<std::size_t>(bytes < 0 ? 0 : bytes)};
  }
  void come(std::uint32_t line) {
    lines_[line].waits = 1;
    ++lines_[line].commits;
  }
  void go(std::uint32_t line) { lines_[line].waits = 0; }

  std::array<CommitLine, 3> lines_{};
  std::array<int, 2> ends_{};
  int before_;
};

TEST_F(CommitWatchTest, the_ranks_that_wait_and_those_that_are_missing_are_named) {
  const auto watch = watch_of(0);
  come(2);
  watch->enter("perdure_commit");
  const std::string text = said();
  EXPECT_NE(text.find("ranks 10 and 12 have waited"), std::string::npos) << text;
  EXPECT_NE(text.find("in perdure_commit (pool /pool) for rank 11."), std::string::npos) << text;
  watch->leave();
}

// All have come to the first commit; a rank that has gone on to the next is not missing.
TEST_F(CommitWatchTest, nothing_is_said_of_a_commit_that_all_have_come_to) {
  const auto watch = watch_of(0);
  come(1);
  come(2);
  watch->enter("the first");
  ::usleep(300'000);
  go(1);
  go(2);
  come(1);
  come(1);
  watch->leave();
  watch->enter("the second");
  const std::string text = said();
  EXPECT_NE(text.find("rank 10 has waited"), std::string::npos) << text;
  EXPECT_NE(text.find("in the second"), std::string::npos) << text;
  EXPECT_NE(text.find("for rank 12."), std::string::npos) << text;
  watch->leave();
}

// Rank 12 never comes. What rank 11 says, it says of the second commit.
TEST_F(CommitWatchTest, only_the_lowest_rank_that_waits_speaks) {
  const auto watch = watch_of(1);
  come(0);
  watch->enter("the first");
  ::usleep(300'000);
  watch->leave();
  go(0);
  watch->enter("the second");  // to which rank 10 does not come either
  const std::string text = said();
  EXPECT_EQ(text.find("the first"), std::string::npos) << text;
  EXPECT_NE(text.find("rank 11 has waited"), std::string::npos) << text;
  EXPECT_NE(text.find("for ranks 10 and 12."), std::string::npos) << text;
  watch->leave();
}

TEST_F(CommitWatchTest, ranks_of_another_machine_are_missing_where_none_is_here) {
  const auto watch = watch_of(0, 4);
  come(1);
  come(2);
  watch->enter("perdure_commit");
  EXPECT_NE(said().find("for a rank of another node"), std::string::npos);
  watch->leave();
}

// Loading a version may take longer than any patience: whom a rank of another node waits for is not
// guessed. Which ranks of this machine are missing is known.
TEST_F(CommitWatchTest, of_other_calls_only_what_is_missing_here_is_named) {
  const auto watch = watch_of(0, 4);
  come(1);
  come(2);
  watch->enter("the first", CommitWatch::Call::other);
  ::usleep(300'000);
  watch->leave();
  come(1);
  watch->enter("perdure_restart", CommitWatch::Call::other);
  const std::string text = said();
  EXPECT_EQ(text.find("the first"), std::string::npos) << text;
  EXPECT_NE(text.find("in perdure_restart (pool /pool) for rank 12."), std::string::npos) << text;
  watch->leave();
}

TEST_F(CommitWatchTest, times_are_read_and_what_is_none_is_refused) {
  EXPECT_EQ(parse_commit_patience(nullptr, nullptr).value().said_after_ns, 30'000 * ms);
  EXPECT_EQ(parse_commit_patience("2s", "1min").value().ended_after_ns, 60'000 * ms);
  EXPECT_TRUE(parse_commit_patience("off", "").value().endless());
  EXPECT_EQ(parse_commit_patience("soon", nullptr).status().code(), Code::invalid_argument);
  EXPECT_EQ(parse_commit_patience(nullptr, "0s").status().code(), Code::invalid_argument);
}

}  // namespace
}  // namespace perdure
