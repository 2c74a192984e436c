// SPDX-License-Identifier: BSD-3-Clause
//
// Write-back: what leaves a part for the cached file, while the file is used (cache.P4) and in
// recovery (cache.P5, cache.P7).
//
//   cache.P4  Whoever writes a block back claims it, moves its dirty bits to `leaving` (set there
//       before they are cleared here), hands the grains to the cached file, and clears `leaving`
//       after fsync, unless another claimed the block since, who does it then. The dirty bits are
//       cleared before the bytes are read, and set by an exchange after the bytes are stored, so a
//       write that comes later is dirty again. If fsync fails, what is leaving is dirty again: a
//       second fsync would not try it. One that somebody else made in this process meanwhile, or
//       for a block that was evicted, may have heard of the failure instead, and counts as this
//       one's.
//   cache.P21 Whoever writes a block back while others use the part has its claim before it asks
//       for the size of the file. set_size() claims each block that it cuts, after it has set the
//       size: when it returns nothing is written beyond that, and the cached file can be cut.
//   cache.P5  Recovery within one boot writes back dirty | leaving | kept.
//   cache.P7  Recovery after another boot writes back the kept grains, then the intentions whose
//       checksum holds. A kept grain that was written later and not flushed holds words of both: as
//       a page cache would have left it.
//
// cache.P6 (cache_part.hpp) asks for this: what is kept and leaving is flushed, with a fence,
// before fsync.
//
// Threads: run() and hand_over() any, in any number of processes; the others by a process that has
// the part alone. Failure: what was not handed over is dirty again.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "base/status.hpp"
#include "cache/block_table.hpp"
#include "cache/change_record.hpp"
#include "cache/part_bytes.hpp"
#include "cache/part_journal.hpp"
#include "cache/part_users.hpp"

namespace perdure {

struct WriteBackTally {
  std::uint64_t bytes = 0;
  std::uint64_t writes = 0;
};

class WriteBack {
 public:
  // All of them outlive it.
  WriteBack(PartBytes& bytes, BlockTable& table, PartUsers& users, PartJournal& journal,
            ChangeRecord& changes)
      : bytes_(bytes), table_(table), users_(users), journal_(journal), changes_(changes) {}

  // As CachePart::write_back().
  Result<WriteBackTally> run(std::uint64_t turn, bool sync);
  // Of a block that this process has, and has claimed: all that is dirty; and durably what nobody
  // else has durably.
  Status hand_over(std::uint64_t block);

  // Of a block, if nobody has it claimed: hands over what is dirty, which is leaving then until a
  // run() waits for the file. Returns the bytes. It waits for nothing itself: an fsync here would
  // hear of failures that are another's, and whose turn it is to say them.
  Result<std::uint64_t> run_early(std::uint64_t block);

  // As CachePart says.
  Result<WriteBackTally> recover(bool same_boot);
  std::uint64_t unsaved_bytes(bool same_boot) const;
  Result<bool> write_present() const;

 private:
  using HandedBlock = std::pair<std::uint64_t, std::uint64_t>;  // and its claim, afterwards

  Status write_grains(std::uint64_t block, const Grains& grains, WriteBackTally& tally);
  Status write_back_block(std::uint64_t block, WriteBackTally& tally,
                          std::vector<HandedBlock>& handed);
  Status write_back_unclean(std::uint64_t first, std::uint64_t blocks, bool sync,
                            WriteBackTally& tally);
  void clear_leaving(std::uint64_t block, std::uint64_t claim);
  Status flush_kept(const std::vector<HandedBlock>& handed);
  Status sync_handed(const std::vector<HandedBlock>& handed, std::uint64_t reported);
  Grains unsaved(std::uint64_t block, bool same_boot) const;
  Status write_unsaved(bool same_boot, WriteBackTally& tally);

  PartBytes& bytes_;
  BlockTable& table_;
  PartUsers& users_;
  PartJournal& journal_;
  ChangeRecord& changes_;
};

}  // namespace perdure
