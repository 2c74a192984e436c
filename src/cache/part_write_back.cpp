// SPDX-License-Identifier: BSD-3-Clause
//
// What leaves a part: to the cached file (P4), and in recovery (P5, P7, P9).
#include <bit>
#include <string>

#include "cache/backoff.hpp"
#include "cache/cache_part.hpp"

namespace perdure {

constexpr std::uint64_t entries_of_page = 4096 / sizeof(BlockFormat);  // the table begins at a page

// Runs of grains, cut at the end of the file.
Status CachePart::write_grains(std::uint64_t block, const Grains& grains, WriteBackTally& tally) {
  const std::uint64_t begun = changes_.note();
  const std::uint64_t writes_before = tally.writes;
  const std::uint64_t begin = file_offset(block);
  const std::uint64_t size = size_bytes();
  for (unsigned first = 0; first < grains_per_block;) {
    if (!grains.has(first)) {
      ++first;
      continue;
    }
    unsigned last = first;
    while (last + 1 < grains_per_block && grains.has(last + 1)) ++last;
    const std::uint64_t from = std::uint64_t{first} << grain_shift_;
    const std::uint64_t to =
        std::min((std::uint64_t{last} + 1) << grain_shift_, size <= begin ? 0 : size - begin);
    if (from < to) {
      SharedForCalls shared;
      const std::byte* bytes = shared.add(bytes_of(block) + from, to - from);
      PERDURE_TRY(backing_->write(begin + from, bytes, to - from));
      tally.bytes += to - from;
      ++tally.writes;
    }
    first = last + 1;
  }
  return tally.writes == writes_before ? Status::success() : changes_.record(begun);
}

// P4 up to fsync.
Status CachePart::write_back_block(std::uint64_t block, WriteBackTally& tally,
                                   std::vector<HandedBlock>& handed) {
  BlockFormat& entry = table_[block];
  auto claim = word(entry.claim);
  Backoff backoff;
  std::uint64_t free = claim.load(std::memory_order_acquire);
  while (owner_of(free) != 0 || !claim.compare_exchange_strong(free, free | peers_.number())) {
    if (owner_of(free) != 0 && backoff.wait()) PERDURE_TRY(peers_.clean_up_if_dead(owner_of(free)));
    free = claim.load(std::memory_order_acquire);
  }
  const std::uint64_t next = free + (std::uint64_t{1} << owner_bits);
  Grains grains{};
  for (unsigned half = 0; half < 2; ++half) {
    grains.bits[half] = word(entry.dirty[half]).load();
    if (grains.bits[half] == 0) continue;
    word(entry.leaving[half]).fetch_or(grains.bits[half]);
    word(entry.dirty[half]).fetch_and(~grains.bits[half]);
  }
  const Status written = write_grains(block, grains, tally);
  if (!written.ok()) {
    for (unsigned half = 0; half < 2; ++half) {
      if (grains.bits[half] != 0) word(entry.dirty[half]).fetch_or(grains.bits[half]);
    }
  }
  claim.store(next, std::memory_order_release);
  handed.emplace_back(block, next);
  return written;
}

// P4 after fsync, which covered what anyone handed over before.
void CachePart::clear_leaving(std::uint64_t block, std::uint64_t claim) {
  BlockFormat& entry = table_[block];
  if (!word(entry.claim).compare_exchange_strong(claim, claim | peers_.number())) return;
  for (std::uint64_t& bits : entry.leaving) word(bits).store(0);
  word(entry.claim).store(claim + (std::uint64_t{1} << owner_bits), std::memory_order_release);
}

// P4, P6: what the cached file is about to have durably replaces what was durable here.
Status CachePart::flush_kept(const std::vector<HandedBlock>& handed) {
  const Stay stay(*this);
  bool any = false;
  for (const auto& [block, claim] : handed) {
    BlockFormat& entry = table_[block];
    Grains grains{};
    for (unsigned half = 0; half < 2; ++half) {
      grains.bits[half] = word(entry.kept[half]).load() & word(entry.leaving[half]).load();
    }
    if (grains.none()) continue;
    flush_grains(block, grains);
    any = true;
  }
  return any ? device_->fence() : Status::success();
}

// An fsync that failed forgets what it could not write: the next one would succeed without it. So
// all is handed over anew.
Status CachePart::sync_handed(const std::vector<HandedBlock>& handed) {
  PERDURE_TRY(flush_kept(handed));
  const Status synced = backing_->sync();
  for (const auto& [block, claim] : handed) {
    if (synced.ok()) {
      clear_leaving(block, claim);
      continue;
    }
    BlockFormat& entry = table_[block];
    for (unsigned half = 0; half < 2; ++half) {
      word(entry.dirty[half]).fetch_or(word(entry.leaving[half]).load());
    }
  }
  return synced;
}

bool CachePart::is_clean(std::uint64_t block) const {
  BlockFormat& entry = table_[block];
  return (word(entry.dirty[0]).load() | word(entry.dirty[1]).load() |
          word(entry.leaving[0]).load() | word(entry.leaving[1]).load()) == 0;
}

// From the `first` block on, all of them.
Status CachePart::write_back_unclean(std::uint64_t first, std::uint64_t blocks, bool sync,
                                     WriteBackTally& tally) {
  std::vector<HandedBlock> handed;
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = (first + i) % blocks;
    if (is_here(block) && !is_clean(block)) {
      PERDURE_TRY(write_back_block(block, tally, handed));
    }
  }
  const bool any = !handed.empty() || is_passing();
  return sync && any ? sync_handed(handed) : Status::success();
}

Result<WriteBackTally> CachePart::write_back(std::uint64_t turn, bool sync) {
  WriteBackTally tally;
  PERDURE_TRY_ASSIGN(const std::uint64_t blocks, blocks_touched());
  const std::uint64_t first = blocks == 0 ? 0 : turn % blocks;
  std::uint64_t clean = 0;
  while (clean < blocks) {
    const std::uint64_t block = (first + clean) % blocks;
    if (is_here(block) && !is_clean(block)) break;
    ++clean;
  }
  // P16: what passed through is the file's, which may not have it durably.
  if (clean == blocks && !(sync && is_passing())) return tally;
  PERDURE_TRY(changes_.begin());
  const Status written =
      write_back_unclean(blocks == 0 ? 0 : (first + clean) % blocks, blocks, sync, tally);
  const Status ended = changes_.end();
  PERDURE_TRY(written);
  PERDURE_TRY(ended);
  return tally;
}

// P12. A header may claim as many blocks as a file may have holes.
std::uint64_t CachePart::next_block(std::uint64_t block) const {
  if (block % entries_of_page != 0 || block >= header_.blocks) return block;
  const std::uint64_t at = header_.table_offset + block * sizeof(BlockFormat);
  const std::uint64_t data = device_->next_allocated(at);
  return data <= at ? block : block + (data - at) / sizeof(BlockFormat);
}

CachePart::Grains CachePart::unsaved(std::uint64_t block, bool same_boot) const {
  const BlockFormat& entry = table_[block];
  Grains grains{{entry.kept[0], entry.kept[1]}};
  if (!same_boot) return grains;
  const bool present = kind_of(entry.state) == BlockState::present;
  for (unsigned half = 0; half < 2; ++half) {
    grains.bits[half] |= present ? entry.dirty[half] | entry.leaving[half] : 0;
  }
  return grains;
}

std::uint64_t CachePart::unsaved_bytes(bool same_boot) const {
  std::uint64_t bytes = 0;
  const std::uint64_t blocks = blocks_in_use();
  for (std::uint64_t block = next_block(0); block < blocks; block = next_block(block + 1)) {
    const Grains grains = unsaved(block, same_boot);
    bytes +=
        static_cast<std::uint64_t>(std::popcount(grains.bits[0]) + std::popcount(grains.bits[1]))
        << grain_shift_;
  }
  for (const JournalFormat* entry : journal_.intended(same_boot)) bytes += entry->length;
  return bytes;
}

Status CachePart::write_unsaved(bool same_boot, WriteBackTally& tally) {
  const std::uint64_t blocks = blocks_in_use();
  for (std::uint64_t block = next_block(0); block < blocks; block = next_block(block + 1)) {
    const Grains grains = unsaved(block, same_boot);
    if (!grains.none()) PERDURE_TRY(write_grains(block, grains, tally));
  }
  for (const JournalFormat* entry : journal_.intended(same_boot)) {  // P3: after the blocks
    const std::uint64_t begun = changes_.note();
    PERDURE_TRY(backing_->write(entry->offset, entry->bytes, entry->length));
    PERDURE_TRY(changes_.record(begun));
    tally.bytes += entry->length;
    ++tally.writes;
  }
  return backing_->sync();
}

// Changes nothing in the part but what P14 says, so that it may be cut short and begun anew.
Result<WriteBackTally> CachePart::recover(bool same_boot) {
  WriteBackTally tally;
  changes_.unlock();
  PERDURE_TRY(changes_.begin());
  const Status written = write_unsaved(same_boot, tally);
  PERDURE_TRY(changes_.end());
  PERDURE_TRY(written);
  return tally;
}

Result<bool> CachePart::write_present() const {
  bool all = true;
  const std::uint64_t size = size_bytes();
  const std::uint64_t count = part_blocks_for(layout_, header_.node, size);
  const std::uint64_t entries = touched();
  for (std::uint64_t block = 0; block < count; ++block) {
    const std::uint64_t begin = file_offset(block);
    if (begin >= size) continue;
    const std::uint64_t bytes = std::min(layout_.block_bytes, size - begin);
    const auto state = block < entries ? kind_of(table_[block].state)
                                       : (is_passing() ? BlockState::through : BlockState::absent);
    if (state == BlockState::present) {
      PERDURE_TRY(backing_->write(begin, bytes_of(block), bytes));
    } else {
      all = all && visible_in(block) == 0 && state != BlockState::through;
    }
  }
  return all;
}

}  // namespace perdure
