// SPDX-License-Identifier: BSD-3-Clause
//
// Part room: how blocks get their room and their bytes; which of them get none, and so pass through
// to the cached file (cache.P1, cache.P12 and cache.P16 of block_table.hpp).
//
// Whoever finds a block absent takes it, gives it room, and reads what the cached file has of it;
// the others wait. The second block is not to take the space without which processes that join
// later can't write: from there on the journal comes first, and where that does not fit either, its
// entries get what is left, one by one.
//
// Threads: any, in any number of processes. Failure: of the file or the device; the block is absent
// again then. A full device is no failure, unless the file is committed with a pool (cache.P16).
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "base/status.hpp"
#include "cache/block_table.hpp"
#include "cache/part_bytes.hpp"
#include "cache/part_journal.hpp"
#include "cache/part_users.hpp"
#include "cache/part_versions.hpp"

namespace perdure {

class PartRoom {
 public:
  // All of them outlive it.
  PartRoom(PartBytes& bytes, BlockTable& table, PartUsers& users, PartJournal& journal,
           PartVersions& versions)
      : bytes_(bytes), table_(table), users_(users), journal_(journal), versions_(versions) {}

  // As CachePart says.
  void set_teller(std::function<void(const std::string&)> tell) { tell_ = std::move(tell); }

  // Whether the block has an entry, as it has from then on, and is absent.
  Result<bool> is_absent(std::uint64_t block);
  // Waits until the block is present or passes through, and nobody has it. False: it has no entry,
  // and so passes through for good.
  Result<bool> settle(std::uint64_t block);
  // Of what settle() returned, marked since: whether it is present, or passes through; nothing: it
  // is neither any more.
  std::optional<bool> look(std::uint64_t block, bool listed) const {
    return listed ? table_.look(block) : false;
  }
  // Calls `access(here)`, with the block present or passing through for as long as that takes.
  template <typename Access>
  Status with_block(std::uint64_t block, const Access& access) {
    while (true) {
      PERDURE_TRY_ASSIGN(const bool listed, settle(block));
      const PartUsers::Mark mark(users_, block);
      const std::optional<bool> here = look(block, listed);
      if (here) return access(*here);
    }
  }
  // False: the block passes through.
  Result<bool> make_present(std::uint64_t block);
  // If the block is absent, and the file has no more than `bytes` to say of it: this process has it
  // from now on, with room, to fill it. False: nothing was done, or it passes through.
  Result<bool> take_unread(std::uint64_t block, std::uint64_t bytes);

  // What this process read into blocks; and how much of the file is in blocks that pass through.
  std::uint64_t filled_bytes() const { return filled_bytes_.load(std::memory_order_relaxed); }
  std::uint64_t through_bytes() const;

 private:
  // cache.P16.
  bool may_pass() const { return !bytes_.with_pool() && !versions_.has_log(); }
  Status no_room(const Status& seen) const { return may_pass() ? seen : versions_.no_room(seen); }
  void note_passing();
  Result<bool> touch(std::uint64_t block);
  Status allocate(std::uint64_t block);
  Result<bool> take_room(std::uint64_t block);
  Status fill(std::uint64_t block);
  Status read(std::uint64_t block);

  PartBytes& bytes_;
  BlockTable& table_;
  PartUsers& users_;
  PartJournal& journal_;
  PartVersions& versions_;
  std::function<void(const std::string&)> tell_;
  std::atomic<std::uint64_t> filled_bytes_{0};
};

}  // namespace perdure
