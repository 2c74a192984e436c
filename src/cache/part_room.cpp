// SPDX-License-Identifier: BSD-3-Clause
//
// Which blocks of a part get room, and what passes through (P1, P12, P16).
#include <algorithm>
#include <string>

#include "cache/backoff.hpp"
#include "cache/cache_part.hpp"

namespace perdure {

// In whole steps.
std::uint64_t CachePart::entries_to(std::uint64_t count) const {
  const std::uint64_t steps = count / table_step + (count % table_step == 0 ? 0 : 1);
  return steps > header_.blocks / table_step ? header_.blocks : steps * table_step;
}

// P12. Several processes may allocate the same pages at once: those that are there stay.
Status CachePart::prepare_table(std::uint64_t blocks) {
  const std::uint64_t ready = table_ready_.load(std::memory_order_relaxed);
  if (blocks <= ready) return Status::success();
  const std::uint64_t there = std::max(ready, entries_to(touched()));
  const std::uint64_t wanted = std::max(there, entries_to(blocks));
  if (there < wanted) {
    PERDURE_TRY(device_->allocate(header_.table_offset + there * sizeof(BlockFormat),
                                  (wanted - there) * sizeof(BlockFormat)));
  }
  table_ready_.store(wanted, std::memory_order_release);
  return Status::success();
}

// What was seen, or why it counts in a group.
Status CachePart::no_room(const Status& seen) const {
  if (seen.code() != Code::no_space || may_pass()) return seen;
  return {Code::no_space,
          std::string(header_.path) + ": no room for more of it on node " +
              std::to_string(header_.node) + "; it is committed with the pool " + header_.pool +
              ", so nothing may pass through to the file, where it could not be undone. Free "
              "space, choose a larger device, or open it without perdure_cache_pool (" +
              seen.message() + ")"};
}

// Whoever is first tells the user.
void CachePart::note_passing() {
  if (is_passing()) return;
  if ((word(state_->touched_blocks).fetch_or(passing_bit) & passing_bit) != 0 || !tell_) return;
  tell_(std::string(header_.path) + ": node " + std::to_string(header_.node) +
        " has no room for more of it in its cache, which has " +
        std::to_string(device_->allocated_bytes()) + " bytes (" + device_->describe().name +
        "); what does not fit passes through to the file, at the file's speed. Choose a larger "
        "device (perdure_cache_directory), or do not cache the file");
}

// Before it is marked: whoever cleans up what a dead process left finds it. False: it has no entry,
// and never gets one.
Result<bool> CachePart::touch(std::uint64_t block) {
  auto shared = word(state_->touched_blocks);
  const bool in_table = block < header_.blocks;
  Status prepared = in_table ? prepare_table(block + 1)
                             : Status(Code::no_space,
                                      "its part has " + std::to_string(header_.blocks) + " blocks");
  if (!prepared.ok() && (prepared.code() != Code::no_space || !may_pass())) {
    return no_room(prepared);
  }
  std::uint64_t seen = shared.load(std::memory_order_acquire);
  if (!prepared.ok() && in_table) {
    seen = shared.fetch_or(table_full_bit) | table_full_bit;
    // Another may have got what this one did not.
    if (block < entries_to(seen & touched_mask)) PERDURE_TRY(prepare_table(block + 1));
  }
  while (block >= (seen & touched_mask)) {
    const bool full = (seen & table_full_bit) != 0 && block >= entries_to(seen & touched_mask);
    if (!in_table || full) {
      note_passing();
      return false;
    }
    const std::uint64_t more = (seen & ~touched_mask) | (block + 1);
    if (shared.compare_exchange_weak(seen, more)) break;
  }
  return true;
}

// Of a block that this process fills. False: it passes through from now on. The second block is not
// to take the space without which threads can't write: from there on the journal comes first, and
// where it does not fit either, its entries get what is left, one by one.
Result<bool> CachePart::take_room(std::uint64_t block) {
  const std::uint64_t at = device_offset(bytes_of(block));
  Status given = block == 0 || !may_pass() ? Status::success() : journal_.take_room();
  if (given.ok()) given = device_->allocate(at, layout_.block_bytes);
  if (given.ok()) return true;
  // Some file systems keep what they found before they were full; if it stays, nothing is wrong.
  (void)device_->discard(at, layout_.block_bytes);
  const bool passes = given.code() == Code::no_space && may_pass();
  if (passes) note_passing();
  word(table_[block].state)
      .store(static_cast<std::uint32_t>(passes ? BlockState::through : BlockState::absent),
             std::memory_order_release);
  if (passes) return false;
  return no_room(given);
}

Result<bool> CachePart::make_present(std::uint64_t block) {
  while (true) {
    PERDURE_TRY_ASSIGN(const bool listed, settle(block));
    const std::optional<bool> here = look(block, listed);
    if (here) return *here;
  }
}

// P1. Whoever finds the block absent fills it, the others wait.
Result<bool> CachePart::settle(std::uint64_t block) {
  if (is_present(block)) return true;
  PERDURE_TRY_ASSIGN(const bool listed, touch(block));
  if (!listed) return false;
  auto state = word(table_[block].state);
  Backoff backoff;
  while (true) {
    auto seen = static_cast<std::uint32_t>(BlockState::absent);
    if (state.compare_exchange_strong(seen, filling())) {
      PERDURE_TRY(fill_taken(block));
      return true;
    }
    if (kind_of(seen) != BlockState::filling && holder_of(seen) == 0) return true;
    if (backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(holder_of(seen)));
  }
}

Status CachePart::fill_taken(std::uint64_t block) {
  PERDURE_TRY_ASSIGN(const bool room, take_room(block));
  if (!room) return Status::success();
  const Status filled = fill_claimed(block);
  const BlockState now = filled.ok() ? BlockState::present : BlockState::absent;
  word(table_[block].state).store(static_cast<std::uint32_t>(now), std::memory_order_release);
  return filled;
}

std::optional<bool> CachePart::look(std::uint64_t block, bool listed) const {
  if (!listed) return false;
  const std::uint32_t state = state_of(block);
  if (state == static_cast<std::uint32_t>(BlockState::present)) return true;
  if (state == static_cast<std::uint32_t>(BlockState::through)) return false;
  return std::nullopt;
}

// The file is larger before the part says so: nobody reads there sooner.
Status CachePart::write_through(std::uint64_t block, std::uint64_t within, const std::byte* from,
                                std::uint64_t bytes, Acknowledge when) {
  const std::uint64_t at = file_offset(block) + within;
  PERDURE_TRY(through_.write(at, from, bytes, when == Acknowledge::durable));
  grow_size(at + bytes);
  return Status::success();
}

// Blocks with an entry that says so, and those without one.
std::uint64_t CachePart::through_bytes() const {
  if (!is_passing()) return 0;
  const std::uint64_t size = size_bytes();
  std::uint64_t bytes = 0;
  const auto add = [&](std::uint64_t block) {
    const std::uint64_t begin = file_offset(block);
    if (begin < size) bytes += std::min(layout_.block_bytes, size - begin);
  };
  const bool full = (touched_word() & table_full_bit) != 0;
  const std::uint64_t entries = full ? entries_to(touched()) : header_.blocks;
  const std::uint64_t blocks = std::min(entries, blocks_in_use());
  for (std::uint64_t block = next_block(0); block < blocks; block = next_block(block + 1)) {
    if (kind_of(table_[block].state) == BlockState::through) add(block);
  }
  const std::uint64_t all = part_blocks_for(layout_, header_.node, size);
  if (all > entries) {
    add(all - 1);
    bytes += (all - 1 - entries) * layout_.block_bytes;
  }
  return bytes;
}

}  // namespace perdure
