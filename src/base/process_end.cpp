// SPDX-License-Identifier: BSD-3-Clause
#include "base/process_end.hpp"

#include <dlfcn.h>
#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <system_error>
#include <thread>

#include "base/clock.hpp"
#include "base/fork_guard.hpp"

namespace perdure {
namespace {

constexpr int unknown_status = -1;
constexpr unsigned poll_us = 200;

std::array<std::atomic<const EndOfKind*>, static_cast<std::size_t>(OpenKind::kinds)> kinds;
std::atomic<int> end_status{unknown_status};
std::atomic<std::uint64_t> progress{0};
std::atomic<bool> left_behind{false};
std::atomic<std::uint64_t> left_by{0};  // fork_depth() of the process that left something

void keep_status(int status, void*) {
  end_status = status;
}

// The exit handler belongs to no library: this one must not be unloaded before it.
void stay_loaded() {
  Dl_info here{};
  if (::dladdr(reinterpret_cast<void*>(&keep_status), &here) == 0) return;
  (void)::dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
}

// Out of memory at the start of a program: codes stay what they are.
void watch_exit() {
  [[maybe_unused]] static const int failed = [] {
    stay_loaded();
    return ::on_exit(keep_status, nullptr);
  }();
}

bool any_open() {
  for (const auto& kind : kinds) {
    const EndOfKind* const how = kind.load();
    if (how != nullptr && how->any_open()) return true;
  }
  return false;
}

// base.E2. Whether all has ended.
bool end_with_patience() {
  static std::atomic<bool> ended{false};  // the thread may outlive this function
  sigset_t all;
  sigset_t before;
  ::sigfillset(&all);
  (void)::pthread_sigmask(SIG_SETMASK, &all, &before);  // signals belong to the program
  try {
    std::thread([] {
      end_open_things(ProcessEnd::exit);
      ended = true;
    }).detach();
  } catch (const std::system_error&) {
    return false;
  }
  (void)::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  std::uint64_t seen = progress;
  std::uint64_t since_ns = monotonic_ns();
  while (!ended) {
    ::usleep(poll_us);
    const std::uint64_t now_ns = monotonic_ns();
    if (progress != seen) {
      seen = progress;
      since_ns = now_ns;
    }
    if (now_ns - since_ns > std::uint64_t{end_patience_ms} * 1'000'000) return false;
  }
  return true;
}

// base.E3. What the C library would flush after this destructor is flushed now.
[[gnu::destructor]] void end_at_exit() {
  if (any_open() && !end_with_patience()) {
    (void)std::fputs(
        "perdure: exit() could not end what the program left open: no thread, or no progress; "
        "`perdure cache ls` shows what is left of cached files, `perdure cache recover` saves it\n",
        stderr);
    note_left_behind();
  }
  if (!left_behind || left_by != fork_depth() || end_status != EXIT_SUCCESS) return;
  (void)std::fflush(nullptr);
  ::_exit(left_behind_code);
}

}  // namespace

void end_with_process(OpenKind kind, const EndOfKind& how) {
  watch_exit();
  kinds[static_cast<std::size_t>(kind)].store(&how);
}

void end_open_things(ProcessEnd end) {
  for (const auto& kind : kinds) {
    if (const EndOfKind* const how = kind.load()) how->end(end);
  }
}

void note_end_progress() {
  progress.fetch_add(1, std::memory_order_relaxed);
}

void note_left_behind() {
  watch_exit();
  left_by = fork_depth();
  left_behind = true;
}

}  // namespace perdure
