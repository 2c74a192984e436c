// SPDX-License-Identifier: BSD-3-Clause
#include "cache/block_table.hpp"

#include <string>

#include "cache/backoff.hpp"

namespace perdure {
namespace {

constexpr std::uint64_t entries_of_page = 4096 / sizeof(BlockFormat);  // the table begins at a page
constexpr std::uint64_t one_claim = std::uint64_t{1} << owner_bits;

}  // namespace

BlockTable::BlockTable(Device& device, const PartHeaderFormat& header, PartPeers& peers)
    : device_(device),
      header_(header),
      peers_(peers),
      state_(*reinterpret_cast<PartStateFormat*>(device.base() + header.state_offset)),
      table_(reinterpret_cast<BlockFormat*>(device.base() + header.table_offset)) {}

// In whole steps.
std::uint64_t BlockTable::entries_to(std::uint64_t count) const {
  const std::uint64_t steps = count / table_step + (count % table_step == 0 ? 0 : 1);
  return steps > header_.blocks / table_step ? header_.blocks : steps * table_step;
}

// cache.P12. Several processes may allocate the same pages at once: those that are there stay.
Status BlockTable::prepare(std::uint64_t blocks) {
  std::uint64_t ready = table_ready_.load(std::memory_order_relaxed);
  if (blocks <= ready) return Status::success();
  const std::uint64_t there = std::max(ready, entries_to(touched()));
  const std::uint64_t wanted = std::max(there, entries_to(blocks));
  if (there < wanted) {
    PERDURE_TRY(device_.allocate(header_.table_offset + there * sizeof(BlockFormat),
                                 (wanted - there) * sizeof(BlockFormat)));
  }
  // Another thread may have prepared more meanwhile.
  while (ready < wanted && !table_ready_.compare_exchange_weak(ready, wanted)) continue;
  return Status::success();
}

Result<std::uint64_t> BlockTable::touched_of(std::uint64_t blocks) {
  const std::uint64_t count = std::min(blocks, touched());
  PERDURE_TRY(prepare(count));
  return count;
}

Result<bool> BlockTable::touch(std::uint64_t block, bool may_pass) {
  auto shared = word(state_.touched_blocks);
  const bool in_table = block < header_.blocks;
  if (in_table && may_pass && block >= listed_max()) return false;  // no need to ask for room again
  const Status prepared = in_table
                              ? prepare(block + 1)
                              : Status(Code::no_space, "its part has ", header_.blocks, " blocks");
  if (!prepared.ok() && (prepared.code() != Code::no_space || !may_pass)) return prepared;
  std::uint64_t seen = shared.load(std::memory_order_acquire);
  if (!prepared.ok() && in_table) {
    seen = shared.fetch_or(table_full_bit) | table_full_bit;
    // Another may have got what this one did not.
    if (block < entries_to(seen & touched_mask)) PERDURE_TRY(prepare(block + 1));
  }
  while (block >= (seen & touched_mask)) {
    const bool full = (seen & table_full_bit) != 0 && block >= entries_to(seen & touched_mask);
    if (!in_table || full) return false;
    const std::uint64_t more = (seen & ~touched_mask) | (block + 1);
    if (shared.compare_exchange_weak(seen, more)) break;
  }
  return true;
}

std::uint64_t BlockTable::listed_max() const {
  return (touched_word() & table_full_bit) != 0 ? entries_to(touched()) : header_.blocks;
}

// cache.P12. A header may claim as many blocks as a file may have holes.
std::uint64_t BlockTable::next(std::uint64_t block) const {
  if (block % entries_of_page != 0 || block >= header_.blocks) return block;
  const std::uint64_t at = header_.table_offset + block * sizeof(BlockFormat);
  const std::uint64_t data = device_.next_allocated(at);
  return data <= at ? block : block + (data - at) / sizeof(BlockFormat);
}

Result<bool> BlockTable::take_absent(std::uint64_t block) {
  Backoff backoff;
  while (true) {
    if (take(block, BlockState::absent, BlockState::filling)) return true;
    const std::uint32_t seen = state_of(block);
    if (seen == 0) continue;
    if (kind_of(seen) != BlockState::filling && holder_of(seen) == 0) return false;
    if (backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(holder_of(seen)));
  }
}

std::optional<bool> BlockTable::look(std::uint64_t block) const {
  const std::uint32_t state = state_of(block);
  if (state == static_cast<std::uint32_t>(BlockState::present)) return true;
  if (state == static_cast<std::uint32_t>(BlockState::through)) return false;
  return std::nullopt;
}

Status BlockTable::await_release(std::uint64_t block) {
  Backoff backoff;
  while (true) {
    const std::uint32_t seen = state_of(block);
    if (kind_of(seen) != BlockState::present || holder_of(seen) == 0) return Status::success();
    if (backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(holder_of(seen)));
  }
}

void BlockTable::add(std::uint64_t (&bits)[2], const Grains& grains) {
  for (unsigned half = 0; half < 2; ++half) {
    if (grains.bits[half] != 0) word(bits[half]).fetch_or(grains.bits[half]);
  }
}

// cache.P4: in this order.
Grains BlockTable::move_dirty_to_leaving(std::uint64_t block) {
  const Grains grains = dirty(block);
  add(table_[block].leaving, grains);
  for (unsigned half = 0; half < 2; ++half) {
    if (grains.bits[half] != 0) word(table_[block].dirty[half]).fetch_and(~grains.bits[half]);
  }
  return grains;
}

Grains BlockTable::clear_grains(std::uint64_t block) {
  BlockFormat& entry = table_[block];
  Grains kept{};
  for (unsigned half = 0; half < 2; ++half) {
    kept.bits[half] = word(entry.kept[half]).exchange(0);
    word(entry.dirty[half]).store(0);
    word(entry.leaving[half]).store(0);
  }
  return kept;
}

void BlockTable::clear(std::uint64_t block) {
  (void)clear_grains(block);
  undo_or_uses(block).store(0);
  set(block, 0);
  flush(block);
}

std::optional<std::uint64_t> BlockTable::try_claim(std::uint64_t block) {
  const std::uint64_t seen = word(table_[block].claim).load(std::memory_order_acquire);
  if (owner_of(seen) != 0 || !try_claim(block, seen)) return std::nullopt;
  return seen;
}

Result<std::uint64_t> BlockTable::claim(std::uint64_t block) {
  Backoff backoff;
  while (true) {
    if (const auto count = try_claim(block)) return *count;
    const std::uint32_t claimer = claimed_by(block);
    if (claimer != 0 && backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(claimer));
  }
}

std::uint64_t BlockTable::give_claim(std::uint64_t block, std::uint64_t count) {
  word(table_[block].claim).store(count + one_claim, std::memory_order_release);
  return count + one_claim;
}

// What it handed on is dirty again.
void BlockTable::give_claim_of(std::uint64_t block, std::uint32_t number) {
  const std::uint64_t claimed = word(table_[block].claim).load(std::memory_order_acquire);
  if (owner_of(claimed) != number) return;
  make_leaving_dirty(block);
  (void)give_claim(block, claimed & ~std::uint64_t{owner_unknown});
}

}  // namespace perdure
