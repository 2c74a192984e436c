// SPDX-License-Identifier: BSD-3-Clause
#include "base/fork_guard.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdint>

#include "base/assert.hpp"

namespace perdure {
namespace {

constexpr std::size_t actions_max = 8;

std::atomic<std::uint64_t> depth{0};
std::array<std::atomic<void (*)()>, actions_max> actions;

// A bit for each descriptor that is kept from children; a process has 2^20 at most by default.
constexpr std::size_t descriptors_max = std::size_t{1} << 20U;
constexpr std::size_t bits = 64;
std::array<std::atomic<std::uint64_t>, descriptors_max / bits> kept;
std::atomic<std::size_t> kept_words{0};  // that may have bits

std::uint64_t bit_of(int fd) {
  return std::uint64_t{1} << (static_cast<std::size_t>(fd) % bits);
}

// The numbers stay taken, as objects of the parent will close them here too.
void empty_kept_descriptors() {
  int nothing = -1;
  for (std::size_t i = 0; i < kept_words.load(); ++i) {
    std::uint64_t word = kept[i].exchange(0);
    for (; word != 0; word &= word - 1) {
      const int fd = static_cast<int>(i * bits) + std::countr_zero(word);
      if (nothing < 0) nothing = ::eventfd(0, EFD_CLOEXEC);
      if (nothing < 0 || ::dup3(nothing, fd, O_CLOEXEC) < 0) ::close(fd);
    }
  }
  if (nothing >= 0) ::close(nothing);
}

void note_child() {
  depth.fetch_add(1, std::memory_order_relaxed);
  empty_kept_descriptors();
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

void keep_from_children(int fd) {
  if (fd < 0 || static_cast<std::size_t>(fd) >= descriptors_max) return;
  watch_forks();
  const std::size_t word = static_cast<std::size_t>(fd) / bits;
  std::size_t words = kept_words.load();
  while (words <= word && !kept_words.compare_exchange_weak(words, word + 1)) {
  }
  kept[word].fetch_or(bit_of(fd));
}

void shared_with_children(int fd) {
  if (fd < 0 || static_cast<std::size_t>(fd) >= descriptors_max) return;
  const std::size_t word = static_cast<std::size_t>(fd) / bits;
  if ((kept[word].load() & bit_of(fd)) != 0) kept[word].fetch_and(~bit_of(fd));
}

Status ForkGuard::check(const std::string& what) const {
  if (!in_child()) return Status::success();
  return Status(Code::wrong_state, what,
                " was opened by the process that this one was forked off from, and is that one's; "
                "open it here after the parent has closed it");
}

}  // namespace perdure
