// SPDX-License-Identifier: BSD-3-Clause
//
// Ends of processes, each in a child that is forked off.
#include "base/process_end.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace perdure {
namespace {

// A child's exit code and what it has written to `written`.
struct Ended {
  int code = -1;
  std::string written;
};

int written = -1;

void tell(const char* word) {
  (void)!::write(written, word, std::char_traits<char>::length(word));
}

template <typename Body>
Ended ended_by(const Body& body) {
  std::array<int, 2> pipe{};
  EXPECT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    written = pipe[1];
    body();
    std::exit(0);
  }
  ::close(pipe[1]);
  Ended ended;
  std::array<char, 256> text{};
  for (ssize_t got = 0; (got = ::read(pipe[0], text.data(), text.size())) > 0;) {
    ended.written.append(text.data(), static_cast<std::size_t>(got));
  }
  ::close(pipe[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  if (WIFEXITED(status)) ended.code = WEXITSTATUS(status);
  return ended;
}

bool yes() {
  return true;
}
bool no() {
  return false;
}

constexpr EndOfKind files{
    yes, [](ProcessEnd end) { tell(end == ProcessEnd::exit ? "files;" : "files at finalize;"); }};
constexpr EndOfKind windows{no, [](ProcessEnd) { tell("windows;"); }};
constexpr EndOfKind pools{yes, [](ProcessEnd) { tell("pools;"); }};
constexpr EndOfKind nothing{no, [](ProcessEnd) { tell("nothing;"); }};
constexpr EndOfKind leaving{yes, [](ProcessEnd) { note_left_behind(); }};

TEST(ProcessEnd, ends_what_is_open_in_the_order_of_kinds_whatever_was_opened_first) {
  const Ended ended = ended_by([] {
    end_with_process(OpenKind::pools, pools);
    end_with_process(OpenKind::windows, windows);
    end_with_process(OpenKind::cached_files, files);
  });
  EXPECT_EQ(ended.written, "files;windows;pools;");
  EXPECT_EQ(ended.code, 0);
}

TEST(ProcessEnd, comes_after_exit_handlers_that_were_registered_before_and_after) {
  const Ended ended = ended_by([] {
    std::atexit([] { tell("before;"); });
    end_with_process(OpenKind::cached_files, files);
    std::atexit([] { tell("after;"); });
  });
  EXPECT_EQ(ended.written, "after;before;files;");
}

TEST(ProcessEnd, does_nothing_where_nothing_is_open) {
  const Ended ended = ended_by([] { end_with_process(OpenKind::cached_files, nothing); });
  EXPECT_EQ(ended.written, "");
  EXPECT_EQ(ended.code, 0);
}

TEST(ProcessEnd, finalize_calls_the_same_actions) {
  const Ended ended = ended_by([] {
    end_with_process(OpenKind::cached_files, files);
    end_open_things(ProcessEnd::finalize);
  });
  EXPECT_EQ(ended.written, "files at finalize;files;");
}

TEST(ProcessEnd, a_process_that_leaves_something_does_not_end_with_0) {
  EXPECT_EQ(ended_by([] { end_with_process(OpenKind::cached_files, leaving); }).code,
            left_behind_code);
}

TEST(ProcessEnd, an_exit_code_of_the_program_stays) {
  const Ended ended = ended_by([] {
    end_with_process(OpenKind::cached_files, leaving);
    std::exit(3);
  });
  EXPECT_EQ(ended.code, 3);
}

TEST(ProcessEnd, what_the_program_has_printed_is_flushed_where_the_code_is_changed) {
  const Ended ended = ended_by([] {
    ::dup2(written, STDOUT_FILENO);
    end_with_process(OpenKind::cached_files, leaving);
    std::printf("printed");
  });
  EXPECT_EQ(ended.written, "printed");
  EXPECT_EQ(ended.code, left_behind_code);
}

TEST(ProcessEnd, a_child_of_a_process_that_left_something_ends_with_its_own_code) {
  int code = -1;
  const Ended ended = ended_by([&code] {
    note_left_behind();
    code = ended_by([] {}).code;
    std::exit(code == 0 ? 5 : 6);
  });
  EXPECT_EQ(ended.code, 5);
}

}  // namespace
}  // namespace perdure
