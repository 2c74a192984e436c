// SPDX-License-Identifier: BSD-3-Clause
#include "cache/part_users.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace perdure {
namespace {

// On a machine whose processors may run without the kernel's clock there is none.
bool wait_for_all_threads() {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

bool has_barrier() {
  const long known = ::syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
  return known >= 0 && (known & MEMBARRIER_CMD_GLOBAL) != 0;
}

}  // namespace

void PartUsers::join(std::uint32_t number) {
  own_ = &state_.users[number - 1];
  word(own_->first).store(0);
  word(own_->any).store(0);
  for (std::uint64_t& block : own_->blocks) word(block).store(0);
  joined_.store(this_thread(), std::memory_order_relaxed);
}

PartUsers::Place PartUsers::take(UserFormat& own, std::uint64_t block) noexcept {
  for (std::uint64_t& at : own.blocks) {
    std::uint64_t free = 0;
    if (word(at).load(std::memory_order_relaxed) == 0 &&
        word(at).compare_exchange_strong(free, block + 1)) {
      return reinterpret_cast<Place>(&at);
    }
  }
  return take_any(own);
}

PartUsers::Place PartUsers::take_any(UserFormat& own) noexcept {
  word(own.any).fetch_add(1);
  return reinterpret_cast<Place>(&own.any) | 1;
}

void PartUsers::give(Place place) noexcept {
  if (place == 0) return;
  auto at = word(word_at(place));
  if ((place & 1) != 0) {
    at.fetch_sub(1, std::memory_order_release);
  } else {
    at.store(0, std::memory_order_release);
  }
}

bool PartUsers::begin_evicting() {
  if (is_evicting()) return true;
  if (!has_barrier()) return false;
  auto state = word(state_.evicting);
  std::uint64_t never = 0;
  state.compare_exchange_strong(never, static_cast<std::uint64_t>(EvictingState::starting));
  if (!wait_for_all_threads()) return false;
  state.store(static_cast<std::uint64_t>(EvictingState::begun));
  return true;
}

// A process that joins is in the table of owners before it has its first mark.
std::uint32_t PartUsers::find_user(std::uint64_t block, std::uint32_t first) const {
  for (std::uint32_t number = first; number <= owners_max; ++number) {
    if (word(state_.owners[number - 1].process).load() == 0) continue;
    UserFormat& user = state_.users[number - 1];
    bool uses = word(user.any).load() != 0 || word(user.first).load() == block + 1;
    for (std::uint64_t& at : user.blocks) uses = uses || word(at).load() == block + 1;
    if (uses) return number;
  }
  return 0;
}

}  // namespace perdure
