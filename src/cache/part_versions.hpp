// SPDX-License-Identifier: BSD-3-Clause
//
// Part versions: a part of a file that is committed with a pool, and goes back to its newest
// version.
//
//   cache.P8  A grain is changed only when its contents at that version are in the undo log
//       (cache.U1). Which version that is, the base version says. Every process sets it, on all
//       nodes that it writes to, between the commit and its next write; because the version is
//       durable on all ranks by then, and no rank writes before it has left the commit, none is
//       lost. Whoever sets it brings along how large the file was then: node 0 knows, a part by
//       itself only where its own bytes end.
//   cache.P9  Recovery puts back what changed after the version that the pool has recovered to,
//       size included, and forgets intentions; then it writes back as in cache.P5 and cache.P7. No
//       part writes beyond the size at that version, or leaves out what it put back before it, and
//       node 0 cuts the file there; so the parts of a file may be recovered in any order.
//
// Levels copy the file as it was at the pool's newest version while the job goes on.
//   cache.P13 Until the base version changes, a grain's contents at it are in the undo log if the
//       grain is kept there at that version, else where the grain itself is: here, or in the cached
//       file while its block is absent. Whoever reads looks at the undo log after it has read, as a
//       grain is kept before it is changed (cache.P8), and so finds the one or the other right. A
//       block that was never present was never changed.
//
// Threads: any, in any number of processes; check_goes_back(), roll_back() and what says `alone` by
// a process that has the part alone. Failure: what could not be kept must not be changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "base/status.hpp"
#include "cache/block_table.hpp"
#include "cache/part_bytes.hpp"
#include "cache/part_peers.hpp"
#include "cache/undo_log.hpp"
#include "parts/part_facts.hpp"

namespace perdure {

class PartVersions {
 public:
  // All of them outlive it.
  PartVersions(PartBytes& bytes, BlockTable& table, PartPeers& peers)
      : bytes_(bytes), table_(table), peers_(peers) {}

  void set_log(std::unique_ptr<UndoLog> log) { log_ = std::move(log); }
  // Without one nothing is kept.
  bool has_log() const { return log_ != nullptr; }

  // cache.P8. Before bytes of a present block are stored to.
  Status before_change(std::uint64_t block, std::uint64_t within, std::uint64_t bytes);
  // What was seen, or, if that is no space, why it counts here.
  Status no_room(const Status& seen) const;
  // Those among the grains that were kept at the version, as they changed since.
  Grains kept(std::uint64_t block, std::uint64_t version, const Grains& among) const;

  // The version after which what changes now comes.
  Result<std::uint64_t> base();
  std::uint64_t base_alone() const { return (bytes_.state().base_version >> owner_bits) - 1; }
  // As CachePart says, all of these.
  Result<std::uint64_t> set_base(std::uint64_t version, std::uint64_t file_bytes);
  Status set_prepared(std::uint64_t version);
  Status set_in_use(bool in_use);
  Status read_at(std::uint64_t version, std::uint64_t block, std::uint64_t within,
                 std::span<std::byte> out);
  Status check_goes_back(const PoolVersion& version) const;

  // cache.P9. Of what goes back to the version, when no write is intended any more.
  Status roll_back(std::uint64_t version);

  // cache.P10. What a process that has died was setting or keeping.
  void give_up_base(std::uint32_t number);
  void give_up(std::uint64_t block, std::uint32_t number) {
    if (any_kept(block)) log_->give_up(block, number);
  }

 private:
  bool any_kept(std::uint64_t block) const {
    return log_ != nullptr && table_.undo_or_uses(block).load(std::memory_order_acquire) != 0;
  }
  bool is_base(std::uint64_t version) const {
    return word(bytes_.state().base_version).load(std::memory_order_acquire) == (version + 1)
                                                                                    << owner_bits;
  }
  Status keep_grain(std::uint64_t block, unsigned grain, std::uint64_t version);
  Status note_size(std::uint64_t version);
  std::uint64_t noted_size(std::uint64_t version) const;
  Status read_now(std::uint64_t block, std::uint64_t within, std::span<std::byte> out);
  Status roll_back_block(std::uint64_t block, std::uint64_t version);

  PartBytes& bytes_;
  BlockTable& table_;
  PartPeers& peers_;
  std::unique_ptr<UndoLog> log_;
};

}  // namespace perdure
