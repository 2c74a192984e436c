// SPDX-License-Identifier: BSD-3-Clause
//
// What a part knows of changes to the cached file (P14), and whether that is the file's word too
// (P15).
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "base/clock.hpp"
#include "cache/backoff.hpp"
#include "cache/cache_part.hpp"

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

void CachePart::flush_stamps() const {
  constexpr std::size_t begin = offsetof(PartStateFormat, changing);
  constexpr std::size_t end = offsetof(PartStateFormat, owners);
  device_->flush(header_.state_offset + begin, end - begin);
}

// P14. The bit is set before the word is looked at, and whoever sets that flushes the bit after it:
// one of the two makes the bit durable.
Status CachePart::begin_file_change() {
  if (!recording_) return Status::success();
  const std::lock_guard<std::mutex> lock(change_mutex_);
  if (changes_ != 0) {
    ++changes_;
    return Status::success();
  }
  const auto [at, bit] = changing_bit(owner());
  word(state_->changing[at]).fetch_or(bit);
  if (word(state_->durable).load() != 0) {
    flush_stamps();
    PERDURE_TRY(device_->fence());
  }
  ++changes_;
  return Status::success();
}

std::uint64_t CachePart::note_file_change() const {
  const std::uint64_t now = wall_clock_ns();
  if (recording_) raise_to(state_->change_begun_ns, now);
  return now;
}

Status CachePart::lock_stamp(std::uint64_t& turn) {
  auto shared = word(state_->stamp_turn);
  Backoff backoff;
  turn = shared.load(std::memory_order_acquire);
  while (owner_of(turn) != 0 || !shared.compare_exchange_strong(turn, turn | owner())) {
    if (owner_of(turn) != 0 && backoff.wait()) PERDURE_TRY(clean_up_if_dead(owner_of(turn)));
    turn = shared.load(std::memory_order_acquire);
  }
  return Status::success();
}

// P14: the stamp is asked for under the lock, so what is recorded later is not older. It goes to
// the place that is not the record yet, which the count then makes it.
Status CachePart::record_file(std::uint64_t begun_ns) {
  if (!recording_) return Status::success();
  std::uint64_t turn = 0;
  PERDURE_TRY(lock_stamp(turn));
  const auto seen = backing_->stamp();
  if (!seen.ok()) {
    word(state_->stamp_turn).store(turn, std::memory_order_release);
    return seen.status();
  }
  const FileStamp& stamp = seen.value();
  const std::uint64_t next = turn + (std::uint64_t{1} << owner_bits);
  state_->stamps[(next >> owner_bits) % 2] = {stamp.size_bytes, stamp.modified_ns,
                                              stamp.changed_ns};
  word(state_->stamp_turn).store(next, std::memory_order_release);
  if (begun_ns == 0) return Status::success();
  const std::uint64_t now = wall_clock_ns();
  if (stamp.changed_ns + tick_ns < begun_ns || stamp.changed_ns > now + tick_ns) {
    word(state_->other_clock).store(1, std::memory_order_relaxed);
  }
  raise_to(state_->slowest_change_ns, now > begun_ns ? now - begun_ns : 0);
  return Status::success();
}

// P14: what could not be recorded stays under way.
Status CachePart::end_file_change() {
  if (!recording_) return Status::success();
  const std::lock_guard<std::mutex> lock(change_mutex_);
  if (changes_ == 0) return Status::success();  // it could not be begun
  const Status recorded = record_file(0);
  if (--changes_ != 0 || !recorded.ok()) return recorded;
  const bool durable = word(state_->durable).load() != 0;
  if (durable) {
    flush_stamps();
    PERDURE_TRY(device_->fence());
  }
  const auto [at, bit] = changing_bit(owner());
  word(state_->changing[at]).fetch_and(~bit);
  if (durable) flush_stamps();
  return Status::success();
}

// P14. Before the first thing that may outlast a power failure.
Status CachePart::expect_power_failure() {
  if (word(state_->durable).load(std::memory_order_acquire) != 0) return Status::success();
  word(state_->durable).store(1);
  flush_stamps();
  return device_->fence();
}

// P10, of a process that has died: what it changed is in the file by now.
Status CachePart::settle_change_of(std::uint32_t number) {
  const auto [at, bit] = changing_bit(number);
  if ((word(state_->changing[at]).load() & bit) == 0) return Status::success();
  PERDURE_TRY(record_file(0));
  word(state_->changing[at]).fetch_and(~bit);
  return Status::success();
}

void CachePart::unlock_stamp_of(std::uint32_t number) {
  std::uint64_t turn = word(state_->stamp_turn).load(std::memory_order_acquire);
  if (owner_of(turn) != number) return;
  word(state_->stamp_turn).compare_exchange_strong(turn, turn & ~std::uint64_t{owner_unknown});
}

// Nobody else uses the part.
void CachePart::unlock_stamp() {
  auto turn = word(state_->stamp_turn);
  turn.store(turn.load() & ~std::uint64_t{owner_unknown});
}

Status CachePart::forget_changes_of_dead() {
  unlock_stamp();
  PERDURE_TRY(begin_file_change());
  PERDURE_TRY(end_file_change());
  for (std::uint64_t& bits : state_->changing) word(bits).store(0);
  flush_stamps();
  return device_->fence();
}

FileEvidence CachePart::file_evidence() const {
  const StampFormat& record = state_->stamps[(state_->stamp_turn >> owner_bits) % 2];
  FileEvidence evidence;
  evidence.recorded = {record.size_bytes, record.modified_ns, record.changed_ns};
  for (const std::uint64_t bits : state_->changing) evidence.under_way |= bits != 0;
  evidence.other_clock = state_->other_clock != 0;
  evidence.begun_ns = state_->change_begun_ns;
  evidence.slowest_ns = state_->slowest_change_ns;
  return evidence;
}

// Grains of which the cached file has the same bytes: read from it and not written since, or
// handed to it. In a group a grain that changes is kept first (P8), and a recovery that was cut
// short may have put it back here, or not.
CachePart::Grains CachePart::shared_with_file(std::uint64_t block) const {
  const BlockFormat& entry = table_[block];
  if (entry.state != static_cast<std::uint32_t>(BlockState::present)) return {};
  const bool handing = owner_of(entry.claim) != 0;
  Grains grains{};
  for (unsigned half = 0; half < 2; ++half) {
    grains.bits[half] = ~(entry.dirty[half] | (handing ? entry.leaving[half] : 0));
  }
  const std::uint64_t base = (state_->base_version >> owner_bits) - 1;
  for (unsigned grain = 0; undo_ != nullptr && entry.undo != 0 && grain < grains_per_block;
       ++grain) {
    if (!undo_->kept(block, grain, base)) continue;
    grains.bits[grain / 64] &= ~(std::uint64_t{1} << (grain % 64));
  }
  return grains;
}

// Words of a range of the file that differ from those here, without those that a write which was
// under way may have changed.
std::uint64_t CachePart::differing_words(std::uint64_t offset, const std::byte* here,
                                         const std::byte* there, std::uint64_t bytes) const {
  if (std::memcmp(here, there, bytes) == 0) return 0;
  std::uint64_t differing = 0;
  for (std::uint64_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
    const std::uint64_t run = std::min<std::uint64_t>(sizeof(std::uint64_t), bytes - at);
    if (std::memcmp(here + at, there + at, run) == 0) continue;
    if (!journal_.may_be_writing(offset + at, run)) ++differing;
  }
  return differing;
}

// P15.
Result<bool> CachePart::contradicts_file() const {
  std::uint64_t owners = 0;
  for (const OwnerFormat& owner : state_->owners) owners += owner.process != 0 ? 1 : 0;
  const std::uint64_t excused = std::max<std::uint64_t>(owners, 1);
  const std::uint64_t grain_bytes = std::uint64_t{1} << grain_shift_;
  std::vector<std::byte> there(grain_bytes);
  std::uint64_t differing = 0;
  const std::uint64_t blocks = blocks_in_use();
  const std::uint64_t size = size_bytes();
  for (std::uint64_t block = next_block(0); block < blocks; block = next_block(block + 1)) {
    const Grains grains = shared_with_file(block);
    const std::uint64_t begin = file_block_of(layout_, {header_.node, block}) << shift_;
    for (unsigned grain = 0; grain < grains_per_block && begin < size; ++grain) {
      const std::uint64_t at = begin + (std::uint64_t{grain} << grain_shift_);
      if (!grains.has(grain) || at >= size) continue;
      const std::uint64_t bytes = std::min(grain_bytes, size - at);
      PERDURE_TRY(backing_->read(at, there.data(), bytes));
      differing += differing_words(at, bytes_of(block) + (at - begin), there.data(), bytes);
      if (differing > excused) return true;
    }
  }
  return false;
}

Result<bool> CachePart::write_present() const {
  bool all = true;
  const std::uint64_t size = size_bytes();
  const std::uint64_t count = part_blocks_for(layout_, header_.node, size);
  const std::uint64_t touched = std::min(header_.blocks, state_->touched_blocks);
  for (std::uint64_t block = 0; block < count; ++block) {
    const std::uint64_t begin = file_block_of(layout_, {header_.node, block}) << shift_;
    if (begin >= size) continue;
    const std::uint64_t bytes = std::min(layout_.block_bytes, size - begin);
    if (block < touched && table_[block].state == static_cast<std::uint32_t>(BlockState::present)) {
      PERDURE_TRY(backing_->write(begin, bytes_of(block), bytes));
    } else {
      all = all && visible_in(block) == 0;
    }
  }
  return all;
}

}  // namespace perdure
