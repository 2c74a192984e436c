// What a process that died left in a part that others use (P10).
#include <algorithm>

#include "cache/cache_part.hpp"

namespace perdure {

Status CachePart::settle_if_dead(std::uint32_t number) {
  if (owners_ == nullptr || !owners_->take_over(number)) return Status::success();
  const Status settled = settle(number);
  owners_->give_back(number, settled.ok());
  return settled;
}

Status CachePart::settle_dead() {
  for (std::uint32_t number = 1; number <= owners_max; ++number) {
    PERDURE_TRY(settle_if_dead(number));
  }
  return Status::success();
}

// What others may wait for comes first; a redone write may have to wait for others itself.
Status CachePart::settle(std::uint32_t number) {
  auto epoch = word(state_->epoch);
  const std::uint64_t set = epoch.load(std::memory_order_acquire);
  if (owner_of(set) == number) epoch.store(set & ~std::uint64_t{owner_unknown});
  std::uint64_t lock = word(state_->lock).load(std::memory_order_acquire);
  if (owner_of(lock) == number) word(state_->lock).compare_exchange_strong(lock, 0);
  const std::uint64_t touched = word(state_->touched_blocks).load(std::memory_order_acquire);
  for (std::uint64_t block = 0; block < std::min(touched, header_.blocks); ++block) {
    PERDURE_TRY(settle_block_of_dead(block, number));
  }
  for (std::uint64_t i = 0; i < header_.journal_slots; ++i) {
    if (word(journal_[i].owner).load(std::memory_order_acquire) != number) continue;
    if (holds(journal_[i], true)) PERDURE_TRY(redo_in_part(journal_[i]));
    word(journal_[i].owner).store(0, std::memory_order_release);
  }
  return Status::success();
}

Status CachePart::settle_block_of_dead(std::uint64_t block, std::uint32_t number) {
  BlockFormat& entry = table_[block];
  auto state = word(entry.state);
  if (state.load(std::memory_order_acquire) ==
      (static_cast<std::uint32_t>(BlockState::filling) | number << 2)) {
    // What is filled later may be less, and zeros must follow it.
    PERDURE_TRY(device_->discard(device_offset(bytes_of(block)), layout_.block_bytes));
    state.store(static_cast<std::uint32_t>(BlockState::absent), std::memory_order_release);
  }
  auto claim = word(entry.claim);
  const std::uint64_t claimed = claim.load(std::memory_order_acquire);
  if (owner_of(claimed) == number) {
    for (unsigned half = 0; half < 2; ++half) {
      word(entry.dirty[half]).fetch_or(word(entry.leaving[half]).load());
    }
    claim.store((claimed & ~std::uint64_t{owner_unknown}) + (std::uint64_t{1} << owner_bits),
                std::memory_order_release);
  }
  if (undo_ != nullptr && word(entry.undo).load(std::memory_order_acquire) != 0) {
    undo_->give_up(block, number);
  }
  return Status::success();
}

// P3, into the part: the cached file is written back to by others at the same time. One that was to
// be durable is so again, before it is forgotten (P6).
Status CachePart::redo_in_part(JournalFormat& slot) {
  std::uint64_t offset = slot.offset;
  const unsigned char* from = slot.bytes;
  for (std::uint64_t left = slot.length; left != 0;) {
    const std::uint64_t block = place_of(layout_, offset).block;
    const std::uint64_t within = offset & (layout_.block_bytes - 1);
    const std::uint64_t run = std::min(left, layout_.block_bytes - within);
    PERDURE_TRY(make_present(block));
    PERDURE_TRY(write_into(block, within, reinterpret_cast<const std::byte*>(from), run));
    if (slot.checksum != 0) PERDURE_TRY(keep(block, within, run));
    offset += run;
    from += run;
    left -= run;
  }
  word(slot.length).store(0, std::memory_order_release);
  device_->flush(device_offset(&slot.length), sizeof slot.length);
  return device_->fence();
}

}  // namespace perdure
