// SPDX-License-Identifier: BSD-3-Clause
#include "watchdog.hpp"

#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>

namespace oracle {
namespace {

constexpr unsigned timeout_s = 60;

// Made beforehand: a signal handler may not format.
std::array<char, 160> last_words{};
volatile std::sig_atomic_t exit_code = 3;

void give_up(int) {
  const ssize_t said = ::write(STDERR_FILENO, last_words.data(), std::strlen(last_words.data()));
  ::_exit(said < 0 ? 3 : exit_code);
}

}  // namespace

void watch(Run run, std::uint64_t seed, std::uint64_t program) {
  std::snprintf(last_words.data(), last_words.size(),
                "the %s run of program %llu hangs; again: --seed %llu --first %llu --programs 1\n",
                run == Run::plain ? "plain" : "cached", static_cast<unsigned long long>(program),
                static_cast<unsigned long long>(seed), static_cast<unsigned long long>(program));
  exit_code = run == Run::plain ? 77 : 3;
  std::signal(SIGALRM, give_up);
  ::alarm(timeout_s);
}

void watch_no_more() {
  ::alarm(0);
}

}  // namespace oracle
