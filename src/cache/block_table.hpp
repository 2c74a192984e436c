// SPDX-License-Identifier: BSD-3-Clause
//
// Block table: what each block of a part is, who has it, and what its grains are to write-back and
// recovery.
//
// A block is absent (the cached file has it), being filled, present, or passes through (the device
// has no room for it).
//   cache.P1  A block becomes present only when all its bytes are there. A block that is being
//       filled is absent to recovery; nobody but its filler stores to it.
//   cache.P12 The table has space up to `touched_blocks`, rounded up to steps, and holes after
//       that. A process gives an entry its space before it counts the block as touched, and looks
//       at no entry beyond what is touched. Recovery passes over holes. A process that gets no
//       space for an entry says in the same word that the table is full: from then on nobody counts
//       a block beyond the steps that were counted before.
//   cache.P16 A block passes through if its entry says so, or if it has none, lying beyond the
//       table or beyond the steps of a full one. Only the process that fills the block marks it, in
//       place of present, or the one that evicts it; only set_size() takes the mark back, while
//       nobody reads or writes, from blocks that it cuts off, or the process that brings the block
//       in (cache.P17). So all processes agree at any time, and a crash on the way leaves the block
//       absent (cache.P1) or passing through, before anything in it was acknowledged. What that
//       means for its bytes is in pass_through.hpp.
//
// Dirty, leaving and kept are sets of grains; cache.P2, cache.P4 and cache.P6 say what they mean.
// Each is a word or two that all processes change by exchanges, and so is a claim: it counts how
// often a block was claimed, and names who has it claimed.
//
// Threads: any. Failure: no space for an entry.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <optional>

#include "base/status.hpp"
#include "cache/grains.hpp"
#include "cache/part_peers.hpp"
#include "parts/part_format.hpp"
#include "pmem/device.hpp"

namespace perdure {

class BlockTable {
 public:
  // The part's device and header outlive it.
  BlockTable(Device& device, const PartHeaderFormat& header, PartPeers& peers);
  BlockTable(const BlockTable&) = delete;
  BlockTable& operator=(const BlockTable&) = delete;

  // cache.P12, cache.P16. Before the block is marked: whoever cleans up what a dead process left
  // finds it. False: it has no entry, and never gets one; never where nothing `may_pass`.
  Result<bool> touch(std::uint64_t block, bool may_pass);
  std::uint64_t touched() const { return std::min(header_.blocks, touched_word() & touched_mask); }
  // Of the first so many blocks those whose entries may be looked at from now on.
  Result<std::uint64_t> touched_of(std::uint64_t blocks);
  // The entry may be looked at already.
  bool is_ready(std::uint64_t block) const {
    return block < table_ready_.load(std::memory_order_acquire);
  }
  // Blocks from here on have no entry, and pass through if any does.
  std::uint64_t listed_max() const;
  bool is_passing() const { return (touched_word() & passing_bit) != 0; }
  // Some block passes through. Whether this process is the first to say so.
  bool note_passing() {
    return !is_passing() && (word(state_.touched_blocks).fetch_or(passing_bit) & passing_bit) == 0;
  }
  // From `block` on, the first one that recovery must look at.
  std::uint64_t next(std::uint64_t block) const;

  // What the block is, with who has it: its holder.
  std::uint32_t state_of(std::uint64_t block) const {
    return is_ready(block) ? word(table_[block].state).load(std::memory_order_acquire) : 0;
  }
  bool is_present(std::uint64_t block) const {
    return state_of(block) == static_cast<std::uint32_t>(BlockState::present);
  }
  // Of one that has an entry.
  bool is_absent(std::uint64_t block) const { return state_of(block) == 0; }
  // Its bytes are here, though perhaps not for long.
  bool is_here(std::uint64_t block) const {
    return kind_of(state_of(block)) == BlockState::present;
  }
  bool is_through(std::uint64_t block) const {
    return kind_of(state_of(block)) == BlockState::through;
  }
  // For a process that has the part alone, of what next() names.
  BlockState kind_alone(std::uint64_t block) const { return kind_of(table_[block].state); }

  // If nobody has the block and it is `seen`: this process has it from now on, as `held`.
  bool take(std::uint64_t block, BlockState seen, BlockState held) {
    auto state = static_cast<std::uint32_t>(seen);
    return word(table_[block].state).compare_exchange_strong(state, held_by(held, peers_.number()));
  }
  // Of a block that it has: what else it is now; or what it is when nobody has it any more.
  void turn(std::uint64_t block, BlockState held) { set(block, held_by(held, peers_.number())); }
  void give(std::uint64_t block, BlockState kind) { set(block, static_cast<std::uint32_t>(kind)); }
  // cache.P1. Waits until the block is present or passes through, and nobody has it. True: it was
  // absent, and this process has it, to fill it.
  Result<bool> take_absent(std::uint64_t block);
  // Of what that returned, marked since (part_users.hpp). True: it is present; false: it passes
  // through; nothing: it is neither any more.
  std::optional<bool> look(std::uint64_t block) const;
  // Until nobody evicts the block any more.
  Status await_release(std::uint64_t block);

  Grains dirty(std::uint64_t block) const { return load(table_[block].dirty); }
  Grains leaving(std::uint64_t block) const { return load(table_[block].leaving); }
  Grains kept(std::uint64_t block) const { return load(table_[block].kept); }
  // cache.P4: first what is dirty, as another moves it to what is leaving.
  Grains unclean(std::uint64_t block) const {
    const Grains seen = dirty(block);
    return seen | leaving(block);
  }
  bool is_clean(std::uint64_t block) const { return unclean(block).none(); }
  // cache.P4: whoever clears a bit before it reads the bytes either sees these or leaves the bit
  // set. A look at the bit without the exchange's fence would not do, and costs as much.
  void mark_dirty(std::uint64_t block, unsigned grain) {
    word(table_[block].dirty[grain / 64]).fetch_or(std::uint64_t{1} << (grain % 64));
  }
  void mark_dirty(std::uint64_t block, const Grains& grains) { add(table_[block].dirty, grains); }
  void mark_kept(std::uint64_t block, const Grains& grains) { add(table_[block].kept, grains); }
  // What was dirty leaves, and is no longer dirty.
  Grains move_dirty_to_leaving(std::uint64_t block);
  // What is leaving is dirty, too.
  void make_leaving_dirty(std::uint64_t block) { mark_dirty(block, leaving(block)); }
  void clear_leaving(std::uint64_t block) {
    for (std::uint64_t& bits : table_[block].leaving) word(bits).store(0);
  }
  // Nothing is dirty, leaving or kept. Returns what was kept.
  Grains clear_grains(std::uint64_t block);
  // Nothing was ever known of the block, which this process has claimed, and still has: whoever
  // looks for what is dirty would hand it on otherwise (cache.P21). Flushed, without a fence.
  void clear(std::uint64_t block);
  void flush(std::uint64_t block) {
    device_.flush(header_.table_offset + block * sizeof(BlockFormat), sizeof(BlockFormat));
  }

  // Claims. The count of the claim before, with which this one is given back; nothing: somebody has
  // it claimed.
  std::optional<std::uint64_t> try_claim(std::uint64_t block);
  // If nobody claimed it since that count.
  bool try_claim(std::uint64_t block, std::uint64_t count) {
    return word(table_[block].claim).compare_exchange_strong(count, count | peers_.number());
  }
  Result<std::uint64_t> claim(std::uint64_t block);
  // Returns the count from now on.
  std::uint64_t give_claim(std::uint64_t block, std::uint64_t count);
  std::uint32_t claimed_by(std::uint64_t block) const {
    return owner_of(word(table_[block].claim).load(std::memory_order_acquire));
  }
  // Of a process that died.
  void give_claim_of(std::uint64_t block, std::uint32_t number);

  // A word of the block's that two others give a meaning: BlockFormat.
  std::atomic_ref<std::uint32_t> undo_or_uses(std::uint64_t block) const {
    return word(table_[block].undo_or_uses);
  }

 private:
  std::uint64_t touched_word() const {
    return word(state_.touched_blocks).load(std::memory_order_acquire);
  }
  std::uint64_t entries_to(std::uint64_t count) const;
  Status prepare(std::uint64_t blocks);
  void set(std::uint64_t block, std::uint32_t state) {
    word(table_[block].state).store(state, std::memory_order_release);
  }
  static Grains load(std::uint64_t (&bits)[2]) {
    return {{word(bits[0]).load(), word(bits[1]).load()}};
  }
  static void add(std::uint64_t (&bits)[2], const Grains& grains);

  Device& device_;
  const PartHeaderFormat& header_;
  PartPeers& peers_;
  PartStateFormat& state_;
  BlockFormat* table_;
  std::atomic<std::uint64_t> table_ready_{0};  // entries that this process may look at (cache.P12)
};

}  // namespace perdure
