// SPDX-License-Identifier: BSD-3-Clause
#include "cache/write_back.hpp"

#include <algorithm>
#include <bit>

#include "base/process_end.hpp"
#include "cache/shared_bytes.hpp"

namespace perdure {

// Runs of grains, cut at the end of the file.
Status WriteBack::write_grains(std::uint64_t block, const Grains& grains, WriteBackTally& tally) {
  const std::uint64_t begun = changes_.note();
  const std::uint64_t writes_before = tally.writes;
  const std::uint64_t begin = bytes_.file_offset(block);
  const std::uint64_t size = bytes_.size_bytes();
  for (unsigned first = 0; first < grains_per_block;) {
    if (!grains.has(first)) {
      ++first;
      continue;
    }
    unsigned last = first;
    while (last + 1 < grains_per_block && grains.has(last + 1)) ++last;
    const std::uint64_t from = std::uint64_t{first} << bytes_.grain_shift();
    const std::uint64_t to = std::min((std::uint64_t{last} + 1) << bytes_.grain_shift(),
                                      size <= begin ? 0 : size - begin);
    if (from < to) {
      SharedForCalls shared;
      const std::byte* bytes = shared.add(bytes_.of(block) + from, to - from);
      PERDURE_TRY(bytes_.file()->write(begin + from, bytes, to - from));
      tally.bytes += to - from;
      ++tally.writes;
      note_end_progress();
    }
    first = last + 1;
  }
  return tally.writes == writes_before ? Status::success() : changes_.record(begun);
}

// cache.P4 up to fsync.
Status WriteBack::write_back_block(std::uint64_t block, WriteBackTally& tally,
                                   std::vector<HandedBlock>& handed) {
  PERDURE_TRY_ASSIGN(const std::uint64_t claim, table_.claim(block));
  const Grains grains = table_.move_dirty_to_leaving(block);
  const Status written = write_grains(block, grains, tally);
  if (!written.ok()) table_.mark_dirty(block, grains);
  handed.emplace_back(block, table_.give_claim(block, claim));
  return written;
}

// cache.P4 after fsync, which covered what anyone handed over before.
void WriteBack::clear_leaving(std::uint64_t block, std::uint64_t claim) {
  if (!table_.try_claim(block, claim)) return;
  table_.clear_leaving(block);
  (void)table_.give_claim(block, claim);
}

// cache.P4, cache.P6: what the cached file is about to have durably replaces what was durable here.
Status WriteBack::flush_kept(const std::vector<HandedBlock>& handed) {
  const PartUsers::Mark stay(users_);
  bool any = false;
  for (const auto& [block, claim] : handed) {
    const Grains grains = table_.kept(block) & table_.leaving(block);
    if (grains.none()) continue;
    bytes_.flush_grains(block, grains);
    any = true;
  }
  return any ? bytes_.device().fence() : Status::success();
}

// An fsync that failed forgets what it could not write: the next one would succeed without it. So
// all is handed over anew.
Status WriteBack::sync_handed(const std::vector<HandedBlock>& handed, std::uint64_t reported) {
  PERDURE_TRY(flush_kept(handed));
  const Status synced = bytes_.file()->sync_after(reported);
  for (const auto& [block, claim] : handed) {
    if (synced.ok()) {
      clear_leaving(block, claim);
    } else {
      table_.make_leaving_dirty(block);
    }
  }
  return synced;
}

// From the `first` block on, all of them.
Status WriteBack::write_back_unclean(std::uint64_t first, std::uint64_t blocks, bool sync,
                                     WriteBackTally& tally) {
  std::vector<HandedBlock> handed;
  const std::uint64_t reported = bytes_.file()->failures_reported();
  for (std::uint64_t i = 0; i < blocks; ++i) {
    const std::uint64_t block = (first + i) % blocks;
    if (table_.is_here(block) && !table_.is_clean(block)) {
      PERDURE_TRY(write_back_block(block, tally, handed));
    }
  }
  const bool any = !handed.empty() || table_.is_passing();
  return sync && any ? sync_handed(handed, reported) : Status::success();
}

Result<WriteBackTally> WriteBack::run(std::uint64_t turn, bool sync) {
  WriteBackTally tally;
  PERDURE_TRY_ASSIGN(const std::uint64_t blocks, table_.touched_of(bytes_.blocks_in_use()));
  const std::uint64_t first = blocks == 0 ? 0 : turn % blocks;
  std::uint64_t clean = 0;
  while (clean < blocks) {
    const std::uint64_t block = (first + clean) % blocks;
    if (table_.is_here(block) && !table_.is_clean(block)) break;
    ++clean;
  }
  // cache.P16: what passed through is the file's, which may not have it durably.
  if (clean == blocks && !(sync && table_.is_passing())) return tally;
  PERDURE_TRY(changes_.begin());
  const Status written =
      write_back_unclean(blocks == 0 ? 0 : (first + clean) % blocks, blocks, sync, tally);
  const Status ended = changes_.end();
  PERDURE_TRY(written);
  PERDURE_TRY(ended);
  return tally;
}

// cache.P4, cache.P21. It may have been evicted, or cut off, before it was claimed.
Result<std::uint64_t> WriteBack::run_early(std::uint64_t block) {
  PERDURE_TRY(changes_.begin());
  WriteBackTally tally;
  Status written;
  if (const auto claim = table_.try_claim(block)) {
    if (table_.is_here(block)) {
      const Grains grains = table_.move_dirty_to_leaving(block);
      written = write_grains(block, grains, tally);
      if (!written.ok()) table_.mark_dirty(block, grains);
    }
    (void)table_.give_claim(block, *claim);
  }
  const Status ended = changes_.end();
  PERDURE_TRY(written);
  PERDURE_TRY(ended);
  return tally.bytes;
}

// cache.P4; and cache.P6, where the part has some of it durably, and would be the only one.
Status WriteBack::hand_over(std::uint64_t block) {
  const Grains dirty = table_.move_dirty_to_leaving(block);
  const Grains only_here = table_.kept(block) & table_.leaving(block);
  if (dirty.none() && only_here.none()) return Status::success();
  const Status begun = changes_.begin();
  WriteBackTally tally;
  Status handed = begun;
  if (handed.ok()) handed = write_grains(block, dirty, tally);
  if (handed.ok() && !only_here.none()) {
    bytes_.flush_grains(block, only_here);
    handed = bytes_.device().fence();
    if (handed.ok()) handed = bytes_.file()->sync_data();
  }
  const Status ended = begun.ok() ? changes_.end() : begun;
  if (handed.ok()) handed = ended;
  if (!handed.ok()) table_.make_leaving_dirty(block);
  return handed;
}

Grains WriteBack::unsaved(std::uint64_t block, bool same_boot) const {
  const Grains kept = table_.kept(block);
  if (!same_boot || table_.kind_alone(block) != BlockState::present) return kept;
  return kept | table_.dirty(block) | table_.leaving(block);
}

std::uint64_t WriteBack::unsaved_bytes(bool same_boot) const {
  std::uint64_t bytes = 0;
  const std::uint64_t blocks = bytes_.blocks_in_use();
  for (std::uint64_t block = table_.next(0); block < blocks; block = table_.next(block + 1)) {
    const Grains grains = unsaved(block, same_boot);
    bytes +=
        static_cast<std::uint64_t>(std::popcount(grains.bits[0]) + std::popcount(grains.bits[1]))
        << bytes_.grain_shift();
  }
  for (const JournalFormat* entry : journal_.intended(same_boot)) bytes += entry->length;
  return bytes;
}

Status WriteBack::write_unsaved(bool same_boot, WriteBackTally& tally) {
  const std::uint64_t blocks = bytes_.blocks_in_use();
  for (std::uint64_t block = table_.next(0); block < blocks; block = table_.next(block + 1)) {
    const Grains grains = unsaved(block, same_boot);
    if (!grains.none()) PERDURE_TRY(write_grains(block, grains, tally));
  }
  for (const JournalFormat* entry : journal_.intended(same_boot)) {  // cache.P3: after the blocks
    const std::uint64_t begun = changes_.note();
    PERDURE_TRY(bytes_.file()->write(entry->offset, entry->bytes, entry->length));
    PERDURE_TRY(changes_.record(begun));
    tally.bytes += entry->length;
    ++tally.writes;
  }
  return bytes_.file()->sync();
}

// Changes nothing in the part but what cache.P14 says, so that it may be cut short and begun anew.
Result<WriteBackTally> WriteBack::recover(bool same_boot) {
  WriteBackTally tally;
  changes_.unlock();
  PERDURE_TRY(changes_.begin());
  const Status written = write_unsaved(same_boot, tally);
  PERDURE_TRY(changes_.end());
  PERDURE_TRY(written);
  return tally;
}

Result<bool> WriteBack::write_present() const {
  bool all = true;
  const std::uint64_t size = bytes_.size_bytes();
  const std::uint64_t count = part_blocks_for(bytes_.layout(), bytes_.header().node, size);
  const std::uint64_t entries = table_.touched();
  for (std::uint64_t block = 0; block < count; ++block) {
    const std::uint64_t begin = bytes_.file_offset(block);
    if (begin >= size) continue;
    const std::uint64_t bytes = std::min(bytes_.block_bytes(), size - begin);
    const BlockState state = block < entries
                                 ? table_.kind_alone(block)
                                 : (table_.is_passing() ? BlockState::through : BlockState::absent);
    if (state == BlockState::present) {
      PERDURE_TRY(bytes_.file()->write(begin, bytes_.of(block), bytes));
    } else {
      all = all && bytes_.visible_in(block) == 0 && state != BlockState::through;
    }
  }
  return all;
}

}  // namespace perdure
