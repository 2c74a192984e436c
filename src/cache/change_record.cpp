// SPDX-License-Identifier: BSD-3-Clause
#include "cache/change_record.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/clock.hpp"
#include "cache/backoff.hpp"

namespace perdure {
namespace {

// By how much the kernel's time of change may lag its clock: it counts in ticks.
constexpr std::uint64_t tick_ns = 20'000'000;

void raise_to(std::uint64_t& at, std::uint64_t value) {
  auto shared = word(at);
  std::uint64_t seen = shared.load(std::memory_order_relaxed);
  while (seen < value && !shared.compare_exchange_weak(seen, value)) {
  }
}

std::pair<std::size_t, std::uint64_t> changing_bit(std::uint32_t owner) {
  const std::uint32_t number = owner == owner_unknown ? 0 : owner;
  return {number / 64, std::uint64_t{1} << (number % 64)};
}

}  // namespace

ChangeRecord::ChangeRecord(Device& device, std::uint64_t state_offset, PartPeers& peers)
    : device_(device),
      state_offset_(state_offset),
      state_(*reinterpret_cast<PartStateFormat*>(device.base() + state_offset)),
      peers_(peers) {}

void ChangeRecord::flush() const {
  constexpr std::size_t begin = offsetof(PartStateFormat, changing);
  constexpr std::size_t end = offsetof(PartStateFormat, owners);
  device_.flush(state_offset_ + begin, end - begin);
}

// cache.K3: the bit is set before `durable` is looked at, and whoever sets that flushes the bit
// after it: one of the two makes the bit durable.
Status ChangeRecord::begin() {
  if (!recording_) return Status::success();
  const std::lock_guard<std::mutex> held(mutex_);
  if (under_way_ != 0) {
    ++under_way_;
    return Status::success();
  }
  const auto [at, bit] = changing_bit(peers_.number());
  word(state_.changing[at]).fetch_or(bit);
  if (word(state_.durable).load() != 0) {
    flush();
    PERDURE_TRY(device_.fence());
  }
  ++under_way_;
  return Status::success();
}

std::uint64_t ChangeRecord::note() const {
  const std::uint64_t now = wall_clock_ns();
  if (recording_) raise_to(state_.change_begun_ns, now);
  return now;
}

Status ChangeRecord::lock(std::uint64_t& turn) {
  auto shared = word(state_.stamp_turn);
  Backoff backoff;
  turn = shared.load(std::memory_order_acquire);
  while (owner_of(turn) != 0 || !shared.compare_exchange_strong(turn, turn | peers_.number())) {
    if (owner_of(turn) != 0 && backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(owner_of(turn)));
    turn = shared.load(std::memory_order_acquire);
  }
  return Status::success();
}

// cache.K2. A change that began at 0 says nothing about clocks.
Status ChangeRecord::store_stamp(std::uint64_t begun_ns) {
  std::uint64_t turn = 0;
  PERDURE_TRY(lock(turn));
  const auto seen = file_->stamp();
  if (!seen.ok()) {
    word(state_.stamp_turn).store(turn, std::memory_order_release);
    return seen.status();
  }
  const FileStamp& stamp = seen.value();
  const std::uint64_t next = turn + (std::uint64_t{1} << owner_bits);
  state_.stamps[(next >> owner_bits) % 2] = {stamp.size_bytes, stamp.modified_ns, stamp.changed_ns};
  word(state_.stamp_turn).store(next, std::memory_order_release);
  if (begun_ns == 0) return Status::success();
  const std::uint64_t now = wall_clock_ns();
  if (stamp.changed_ns + tick_ns < begun_ns || stamp.changed_ns > now + tick_ns) {
    word(state_.other_clock).store(1, std::memory_order_relaxed);
  }
  raise_to(state_.slowest_change_ns, now > begun_ns ? now - begun_ns : 0);
  return Status::success();
}

Status ChangeRecord::end(std::uint64_t begun_ns) {
  if (!recording_) return Status::success();
  const std::lock_guard<std::mutex> held(mutex_);
  if (under_way_ == 0) return Status::success();  // it could not be begun
  Status recorded = store_stamp(begun_ns);
  if (--under_way_ != 0 || !recorded.ok()) return recorded;
  const bool durable = word(state_.durable).load() != 0;
  if (durable) {
    flush();
    PERDURE_TRY(device_.fence());
  }
  const auto [at, bit] = changing_bit(peers_.number());
  word(state_.changing[at]).fetch_and(~bit);
  if (durable) flush();
  return Status::success();
}

Status ChangeRecord::expect_power_failure() {
  if (word(state_.durable).load(std::memory_order_acquire) != 0) return Status::success();
  word(state_.durable).store(1);
  flush();
  return device_.fence();
}

Status ChangeRecord::settle(std::uint32_t number) {
  const auto [at, bit] = changing_bit(number);
  if ((word(state_.changing[at]).load() & bit) == 0) return Status::success();
  PERDURE_TRY(record(0));
  word(state_.changing[at]).fetch_and(~bit);
  return Status::success();
}

void ChangeRecord::unlock_if_of(std::uint32_t number) {
  std::uint64_t turn = word(state_.stamp_turn).load(std::memory_order_acquire);
  if (owner_of(turn) != number) return;
  word(state_.stamp_turn).compare_exchange_strong(turn, turn & ~std::uint64_t{owner_unknown});
}

void ChangeRecord::unlock() {
  auto turn = word(state_.stamp_turn);
  turn.store(turn.load() & ~std::uint64_t{owner_unknown});
}

Status ChangeRecord::forget_dead() {
  unlock();
  PERDURE_TRY(begin());
  PERDURE_TRY(end());
  for (std::uint64_t& bits : state_.changing) word(bits).store(0);
  flush();
  return device_.fence();
}

FileEvidence ChangeRecord::evidence() const {
  const StampFormat& record = state_.stamps[(state_.stamp_turn >> owner_bits) % 2];
  FileEvidence evidence;
  evidence.recorded = {record.size_bytes, record.modified_ns, record.changed_ns};
  for (const std::uint64_t bits : state_.changing) evidence.under_way |= bits != 0;
  evidence.other_clock = state_.other_clock != 0;
  evidence.begun_ns = state_.change_begun_ns;
  evidence.slowest_ns = state_.slowest_change_ns;
  return evidence;
}

}  // namespace perdure
