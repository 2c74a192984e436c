// SPDX-License-Identifier: BSD-3-Clause
#include "cache/early_write_back.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <system_error>

#include "base/clock.hpp"
#include "cache/signals_blocked.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t idle_period_ns_max = 1'000'000'000;
// Looking takes at most so small a part of the time.
constexpr std::uint64_t rest_for_look = 200;
constexpr std::uint32_t patience_max = 1024;
constexpr int lowest_priority = 19;

bool are_same(const Grains& a, const Grains& b) {
  return a.bits[0] == b.bits[0] && a.bits[1] == b.bits[1];
}

}  // namespace

std::unique_ptr<EarlyWriteBack> EarlyWriteBack::start(CachePart& part, std::uint64_t turn,
                                                      const Terms& terms) {
  std::unique_ptr<EarlyWriteBack> made(new EarlyWriteBack(part, turn, terms));
  const AllSignalsBlocked blocked;
  try {
    made->thread_ = std::thread(&EarlyWriteBack::run, made.get());
  } catch (const std::system_error&) {
    return nullptr;
  }
  return made;
}

void EarlyWriteBack::stop() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_.store(true, std::memory_order_release);
  }
  stop_.notify_one();
  if (thread_.joinable()) thread_.join();
}

// Whether it is to go on.
bool EarlyWriteBack::rest(std::uint64_t ns) {
  std::unique_lock<std::mutex> lock(mutex_);
  (void)stop_.wait_for(lock, std::chrono::nanoseconds(ns), [this] { return is_stopped(); });
  return !is_stopped();
}

void EarlyWriteBack::run() {
  // On Linux a thread has a priority of its own, which this names by 0.
  (void)::setpriority(PRIO_PROCESS, 0, lowest_priority);
  std::uint64_t period = terms_.period_ns;
  while (rest(period)) {
    const std::uint64_t begun = monotonic_ns();
    const std::uint64_t before = written_bytes();
    bool any_dirty = false;
    if (!look(any_dirty).ok()) return;
    const bool wrote = written_bytes() != before;
    const std::uint64_t looked = wrote ? 0 : monotonic_ns() - begun;
    period = any_dirty ? terms_.period_ns : std::min(2 * period, idle_period_ns_max);
    period = std::max(period, looked * rest_for_look);
  }
}

bool EarlyWriteBack::has_cooled(Seen& seen, const Grains& dirty) {
  if (!are_same(seen.dirty, dirty)) {
    seen.dirty = dirty;
    seen.left = seen.patience;
    return false;
  }
  if (--seen.left != 0) return false;
  seen.patience = std::min(2 * seen.patience, patience_max);
  seen.dirty = {};
  return true;
}

Status EarlyWriteBack::look(bool& any_dirty) {
  PERDURE_TRY_ASSIGN(const std::uint64_t blocks, part_.blocks_looked_at());
  if (blocks * part_.layout().block_bytes < terms_.least || part_.is_passing()) {
    return Status::success();
  }
  if (seen_.size() < blocks) seen_.resize(blocks);
  for (std::uint64_t i = 0; i < blocks && !is_stopped(); ++i) {
    const std::uint64_t block = (turn_ + i) % blocks;
    const Grains dirty = part_.dirty(block);
    if (dirty.none()) continue;
    any_dirty = true;
    if (!has_cooled(seen_[block], dirty)) continue;
    PERDURE_TRY_ASSIGN(const std::uint64_t bytes, part_.write_early(block));
    (void)written_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  }
  return Status::success();
}

}  // namespace perdure
