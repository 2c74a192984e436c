// SPDX-License-Identifier: BSD-3-Clause
#include "ipv_check/process.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "base/environment.hpp"
#include "base/files.hpp"
#include "base/process_place.hpp"
#include "ipv_check/report.hpp"
#include "perdure/perdure_ipv_abi.h"

extern "C" {
PERDURE_API uintptr_t perdure_ipv_low = 0;
PERDURE_API uintptr_t perdure_ipv_high = 0;
PERDURE_API uintptr_t perdure_ipv_box_bytes_min = 1;  // each of them is checked
}

namespace perdure::ipv_check {

constinit std::atomic<Process*> process = nullptr;
constinit std::atomic<std::uintptr_t> reach_begin = 0;
constinit std::atomic<std::uintptr_t> reach_end = 0;
constinit std::atomic<bool> locked = false;
constinit thread_local bool within = false;

namespace {

constexpr const char* variable = "PERDURE_IPV_CHECK";
constexpr int wrong_setting_exit_code = 2;
constexpr int spins = 64;

constinit Site no_site{"", "", 0, 0, 0, 0, nullptr, -1, {}};
constinit thread_local Site* here = &no_site;

[[noreturn]] void end_process(int code) {
  for (;;) ::syscall(SYS_exit_group, code);
}

void write_report(const std::string& path, const std::string& text) {
  const Status written = write_output(path, text);
  if (!written.ok()) say("the report can't be written: " + written.message());
}

std::string summary(const Checker& checker) {
  return sentence(checker.violation_count(), " violations at ", checker.violations().size(),
                  " places in ", checker.iterations(), " iterations, ", checker.loads(),
                  " loads and ", checker.stores(), " stores of ", checker.objects().size(),
                  " objects");
}

void finish_once(Process& self) {
  const RunFacts run{command_words(), place_of_environment(), self.marks, self.lost.load(),
                     ipv_builds()};
  std::string text;
  if (self.record) {
    self.record->finish();
    text = record_report(*self.record, run);
  } else {
    text = check_report(*self.checker, run);
    if (self.options.report.empty() && !self.checker->objects().empty()) {
      say(summary(*self.checker));
    }
  }
  if (self.options.report.empty()) return;
  write_report(expand_path(self.options.report, static_cast<std::uint64_t>(self.number), run.place),
               text);
}

// Whether the process should end with `violations_exit_code` if it would end well.
bool finish() {
  const Inside inside;
  if (!inside || inside->number != ::getpid()) return false;
  if (!inside->finished) finish_once(*inside);
  inside->finished = true;
  return inside->checker != nullptr && inside->checker->violation_count() != 0;
}

// After all that the program registered, and the destructors of its libraries.
void at_exit(int status, void* /*nothing*/) {
  if (!finish() || status != 0) return;
  std::fflush(nullptr);
  end_process(violations_exit_code);
}

void before_fork() {
  within = true;
  wait_for_lock();
}
void after_fork() {
  locked.store(false, std::memory_order_release);
  within = false;
}
// A child is not followed.
void after_fork_in_child() {
  process = nullptr;
  reach_begin = reach_end = 0;
  after_fork();
}

void tell(const std::string& sentence) {
  Process& self = *process.load();
  if (self.shown == self.options.show) say("more violations are counted, and not shown here");
  if (self.shown++ < self.options.show) say(sentence);
}

[[noreturn]] void refuse(const Status& status) {
  say(status.message());
  end_process(wrong_setting_exit_code);
}

[[gnu::constructor(101)]] void start_process() {
  within = true;
  say_unknown_variables();
  auto options = parse_options(environment(variable));
  if (!options.ok()) refuse(options.status());
  const auto every = parse_every(environment("PERDURE_IPV"));
  if (!every.ok()) refuse(every.status());
  auto self = std::make_unique<Process>();
  self->options = options.value();
  self->every = every.value();
  self->number = ::getpid();
  if (self->options.records) {
    self->record = std::make_unique<Record>();
  } else {
    self->checker = std::make_unique<Checker>(tell);
  }
  process = self.release();
  pthread_atfork(before_fork, after_fork, after_fork_in_child);
  ::on_exit(at_exit, nullptr);
  within = false;
}

}  // namespace

void say(const std::string& what) {
  const std::string line = "perdure ipv check: " + what + "\n";
  // Nothing can be done where stderr is closed.
  [[maybe_unused]] const ssize_t count = ::write(STDERR_FILENO, line.data(), line.size());
}

void wait_for_lock() {
  for (int i = 0; locked.exchange(true, std::memory_order_acquire); ++i) {
    if (i % spins == spins - 1) ::sched_yield();
  }
}

void set_reach(const Process& self) {
  std::pair<std::uintptr_t, std::uintptr_t> reach{0, 0};
  if (self.record) {
    if (self.record->has_begun()) reach = {0, ~std::uintptr_t{0}};
  } else {
    reach = self.checker->reach();
    const auto [low, high] = self.checker->bounds();
    perdure_ipv_low = low;
    perdure_ipv_high = high;
  }
  reach_begin = reach.first;
  reach_end = reach.second;
}

Site& take_here() {
  return *std::exchange(here, &no_site);
}

void set_here(Site* site) {
  here = site;
}

}  // namespace perdure::ipv_check

extern "C" {

// In front of libc's, so that the report is written.
PERDURE_API void _exit(int code) {
  const bool fails = perdure::ipv_check::finish() && code == 0;
  perdure::ipv_check::end_process(fails ? perdure::ipv_check::violations_exit_code : code);
}

PERDURE_API void _Exit(int code) {
  _exit(code);
}

}  // extern "C"
