// SPDX-License-Identifier: BSD-3-Clause
//
// What a process that died left in a part that others use (cache.P10).
#include <algorithm>

#include "cache/cache_part.hpp"

namespace perdure {

// What others may wait for comes first; a redone write may have to wait for others itself.
Status CachePart::clean_up_after(std::uint32_t number) {
  versions_.give_up_base(number);
  std::uint64_t lock = word(state_->lock).load(std::memory_order_acquire);
  if (owner_of(lock) == number) word(state_->lock).compare_exchange_strong(lock, 0);
  pointers_.give_those_of(number);
  changes_.unlock_if_of(number);
  PERDURE_TRY_ASSIGN(const std::uint64_t entries, table_.touched_of(header().blocks));
  for (std::uint64_t block = 0; block < entries; ++block) {
    PERDURE_TRY(clean_up_block(block, number));
  }
  for (JournalFormat* entry : journal_.entries()) {
    if (word(entry->owner).load(std::memory_order_acquire) != number) continue;
    if (PartJournal::is_intended(*entry, true)) PERDURE_TRY(redo(*entry));
    word(entry->writing_bytes).store(0, std::memory_order_release);
    word(entry->owner).store(0, std::memory_order_release);
  }
  return changes_.settle(number);
}

Status CachePart::clean_up_block(std::uint64_t block, std::uint32_t number) {
  const std::uint32_t seen = table_.state_of(block);
  if (holder_of(seen) == number) {
    // What is filled later may be less, and zeros must follow it. What passes through has no room.
    const BlockState kind = kind_of(seen);
    if (kind != BlockState::present) PERDURE_TRY(bytes_.discard(block));
    table_.give(block, kind == BlockState::filling ? BlockState::absent : kind);
  }
  table_.give_claim_of(block, number);
  versions_.give_up(block, number);
  return Status::success();
}

// cache.P3, into the part, unless the block passes through: the cached file is written back to by
// others at the same time. One that was to be durable is so again, before it is forgotten
// (cache.P6).
Status CachePart::redo(JournalFormat& entry) {
  std::uint64_t offset = entry.offset;
  const unsigned char* from = entry.bytes;
  for (std::uint64_t left = entry.length; left != 0;) {
    const std::uint64_t block = place_of(layout(), offset).block;
    const std::uint64_t within = offset & (layout().block_bytes - 1);
    const std::uint64_t run = std::min(left, layout().block_bytes - within);
    const auto when = entry.checksum != 0 ? Acknowledge::durable : Acknowledge::sync;
    const Status done = room_.with_block(block, [&](bool here) {
      return write_run(here, block, within, reinterpret_cast<const std::byte*>(from), run, when);
    });
    PERDURE_TRY(done);
    offset += run;
    from += run;
    left -= run;
  }
  return journal_.forget_durably(entry);
}

}  // namespace perdure
