// SPDX-License-Identifier: BSD-3-Clause
#include "cache/evictor.hpp"

#include <algorithm>

#include "cache/backoff.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t bytes_of_access = 256;  // cost one more, where bytes are dear
constexpr std::uint64_t bytes_of_price = 64;    // of a block: for each one access
constexpr std::uint64_t bytes_of_room = 512;    // the same, where room is free
constexpr std::uint64_t price_min = 16;
// Of so many uses one is counted: not every so-many-th, as those may always be of one block.
constexpr std::uint64_t sampled = 16;
constexpr std::uint64_t golden = 0x9E3779B97F4A7C15U;
constexpr std::uint64_t looks_max = 4096;  // for a block that makes room
constexpr int victims_max = 2;             // for one block: others may take what they leave
constexpr int waits_max = 96;              // for accesses to end: some milliseconds

constexpr unsigned round_shift = 24;  // of BlockFormat::undo_or_uses
constexpr std::uint32_t uses_mask = (1U << round_shift) - 1;

}  // namespace

FileMedium Evictor::medium() {
  int known = medium_.load(std::memory_order_relaxed);
  if (known < 0) {
    known = static_cast<int>(bytes_.file()->medium());
    medium_.store(known, std::memory_order_relaxed);
  }
  return static_cast<FileMedium>(known);
}

// In units of one access.
std::uint64_t Evictor::weight_of(std::uint64_t bytes) {
  return 1 + (medium() == FileMedium::other ? bytes / bytes_of_access : 0);
}

// Of which a swap costs a fourth at most.
std::uint64_t Evictor::price_of_block() const {
  if (terms_.price != 0) return terms_.price;
  return std::clamp<std::uint64_t>(bytes_.block_bytes() / bytes_of_price, price_min, uses_mask);
}

// About what it costs to give it and to read the block.
std::uint64_t Evictor::price_of_room() const {
  if (terms_.room_price != EvictingTerms::as_its_size_says) return terms_.room_price;
  return bytes_.block_bytes() / bytes_of_room;
}

std::uint64_t Evictor::uses_in_round(std::uint64_t block) const {
  const std::uint64_t round = word(bytes_.state().round).load(std::memory_order_relaxed);
  const std::uint32_t seen = table_.undo_or_uses(block).load(std::memory_order_relaxed);
  return seen >> round_shift == (round & 0xff) ? seen & uses_mask : 0;
}

void Evictor::set_uses(std::uint64_t block, std::uint64_t uses) {
  const std::uint64_t round = word(bytes_.state().round).load(std::memory_order_relaxed);
  const auto count = static_cast<std::uint32_t>(std::min<std::uint64_t>(uses, uses_mask));
  table_.undo_or_uses(block).store(static_cast<std::uint32_t>(round & 0xff) << round_shift | count,
                                   std::memory_order_relaxed);
}

void Evictor::count_use(std::uint64_t block, std::uint64_t bytes) noexcept {
  const std::uint64_t uses = uses_.load(std::memory_order_relaxed) + 1;
  uses_.store(uses, std::memory_order_relaxed);
  if (uses * golden >> 60U != 0 || !may_evict()) return;
  set_uses(block, uses_in_round(block) + sampled * weight_of(bytes));
}

// Of reads of b bytes one in b / small_read_bytes, chosen as in count_use().
bool Evictor::counts_read(std::uint64_t bytes) {
  constexpr unsigned bits = 24;
  if (bytes <= small_read_bytes) return true;
  const std::uint64_t reads = large_reads_.load(std::memory_order_relaxed) + 1;
  large_reads_.store(reads, std::memory_order_relaxed);
  return (reads * golden >> (64U - bits)) * bytes < small_read_bytes << bits;
}

// Where bytes are dear they are read once.
bool Evictor::defers_room(std::uint64_t block, std::uint64_t bytes) {
  const std::uint64_t price = price_of_room();
  if (price == 0 || !counts_uses() || medium() == FileMedium::other) return false;
  const std::uint64_t hits = hits_.load(std::memory_order_relaxed);
  if (hits >= price) {
    hits_.store(hits - price, std::memory_order_relaxed);
    return false;
  }
  const std::uint64_t uses = uses_in_round(block);
  if (uses >= price) return false;
  if (counts_read(bytes)) set_uses(block, uses + 1);
  return true;
}

void Evictor::pay(std::uint64_t block, std::uint64_t bytes) {
  if (!may_evict() || !table_.is_ready(block)) return;
  const std::uint64_t weight = weight_of(bytes);
  paid_.fetch_add(weight, std::memory_order_relaxed);
  const std::uint64_t uses = uses_in_round(block) + weight;
  set_uses(block, uses);
  if (uses >= price_of_block() && begin()) bring_in(block);
}

// cache.U2 of part_users.hpp. What present blocks are used is counted only from then on.
bool Evictor::begin() {
  if (users_.is_evicting()) return true;
  if (paid_.load(std::memory_order_relaxed) < terms_.first_price) return false;
  if (users_.begin_evicting()) {
    begin_round(word(bytes_.state().hand).load());
  } else {
    paid_.store(0, std::memory_order_relaxed);
  }
  return false;
}

void Evictor::begin_round(std::uint64_t hand) {
  word(bytes_.state().round_hand).store(hand, std::memory_order_relaxed);
  word(bytes_.state().round).fetch_add(1, std::memory_order_relaxed);
}

// Any that is used little; it need not be the one that is used least.
std::optional<std::uint64_t> Evictor::find_victim(std::uint64_t candidate) {
  const auto touched = table_.touched_of(bytes_.header().blocks);
  if (!touched.ok() || touched.value() == 0) return std::nullopt;
  const std::uint64_t blocks = touched.value();
  const std::uint64_t most = price_of_block() / 4;
  const bool reads_only = bytes_.file()->access() == BackingFile::Access::read;
  auto hand = word(bytes_.state().hand);
  for (std::uint64_t looks = std::min(blocks, looks_max); looks != 0; --looks) {
    const std::uint64_t block = hand.fetch_add(1, std::memory_order_relaxed) % blocks;
    if (block == candidate || !table_.is_present(block)) continue;
    if (reads_only && !table_.is_clean(block)) continue;
    if (table_.claimed_by(block) != 0) continue;
    if (uses_in_round(block) <= most) return block;
  }
  const std::uint64_t looked = hand.load(std::memory_order_relaxed);
  if (looked - word(bytes_.state().round_hand).load(std::memory_order_relaxed) >= blocks) {
    begin_round(looked);
  }
  return std::nullopt;
}

// cache.P17, of a block that passes through.
void Evictor::bring_in(std::uint64_t block) {
  if (!table_.take(block, BlockState::through, BlockState::through)) return;
  const bool in = await_users(block) && bring_in_held(block);
  set_uses(block, in ? price_of_block() : 0);
  table_.give(block, in ? BlockState::present : BlockState::through);
  // Now that this process has no block any more, which what the dead intended could wait for.
  if (!in) (void)peers_.clean_up_after_dead();
}

// All of it, as the file has what was written through, and what was evicted before, also where it
// had nothing when the part was made.
bool Evictor::bring_in_held(std::uint64_t block) {
  if (!make_room(block)) return false;
  brought_in_blocks_.fetch_add(1, std::memory_order_relaxed);
  const Status read =
      bytes_.file()->read(bytes_.file_offset(block), bytes_.of(block), bytes_.block_bytes());
  if (read.ok()) return true;
  (void)bytes_.discard(block);
  return false;
}

bool Evictor::make_room(std::uint64_t block) {
  for (int victims = 0;; ++victims) {
    const Status given = bytes_.allocate(block);
    if (given.ok()) return true;
    (void)bytes_.discard(block);
    if (given.code() != Code::no_space || victims == victims_max) return false;
    const auto victim = find_victim(block);
    if (!victim) return false;
    if (!evict(*victim)) return false;
  }
}

// cache.P17, of a present block. False: somebody uses it, or the file does not take what is dirty.
bool Evictor::evict(std::uint64_t block) {
  const auto claim = table_.try_claim(block);
  if (!claim) return false;
  bool gone = false;
  if (table_.take(block, BlockState::present, BlockState::present)) {
    gone = await_users(block) && evict_held(block);
    table_.give(block, gone ? BlockState::through : BlockState::present);
  }
  (void)table_.give_claim(block, *claim);
  if (!gone) return false;
  evicted_blocks_.fetch_add(1, std::memory_order_relaxed);
  word(bytes_.state().evicted_blocks).fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Its room goes last. If it can't go, the block passes through all the same, and set_size() tries
// again before the room may count as zeros.
bool Evictor::evict_held(std::uint64_t block) {
  if (!write_back_.hand_over(block).ok() || !forget_here(block).ok()) return false;
  table_.turn(block, BlockState::through);
  (void)bytes_.discard(block);
  set_uses(block, 0);
  return true;
}

// Nothing here is to be written over what the file gets from now on. Durably, before the bytes go.
Status Evictor::forget_here(std::uint64_t block) {
  const Grains kept = table_.clear_grains(block);
  if (kept.none()) return Status::success();
  table_.flush(block);
  const Status fenced = bytes_.device().fence();
  if (!fenced.ok()) table_.mark_kept(block, kept);
  return fenced;
}

// Of a block that this process has. False: not in time; a user may be dead.
bool Evictor::await_users(std::uint64_t block) {
  Backoff backoff;
  std::uint32_t user = 1;
  for (int waits = 0; waits < waits_max; ++waits) {
    user = users_.find_user(block, user);
    if (user == 0) return true;
    (void)backoff.wait();
  }
  return false;
}

}  // namespace perdure
