// SPDX-License-Identifier: BSD-3-Clause
#include "base/fork_guard.hpp"

#include <pthread.h>

#include <array>
#include <atomic>

#include "base/assert.hpp"

namespace perdure {
namespace {

constexpr std::size_t actions_max = 8;

std::atomic<std::uint64_t> depth{0};
std::array<std::atomic<void (*)()>, actions_max> actions;

void note_child() {
  depth.fetch_add(1, std::memory_order_relaxed);
  for (const auto& action : actions) {
    if (const auto act = action.load()) act();
  }
}

void watch_forks() {
  static const int failed = ::pthread_atfork(nullptr, nullptr, note_child);
  PERDURE_ASSERT(failed == 0);  // out of memory, at the start of a program
}

}  // namespace

std::uint64_t fork_depth() {
  watch_forks();
  return depth.load(std::memory_order_relaxed);
}

void in_forked_children(void (*act)()) {
  watch_forks();
  for (auto& action : actions) {
    void (*expected)() = nullptr;
    if (action.compare_exchange_strong(expected, act) || expected == act) return;
  }
  PERDURE_ASSERT(false);  // more kinds of things to guard than there are
}

Status ForkGuard::check(const std::string& what) const {
  if (!in_child()) return Status::success();
  return Status(Code::wrong_state, what,
                " was opened by the process that this one was forked off from, and is that one's; "
                "open it here after the parent has closed it");
}

}  // namespace perdure
