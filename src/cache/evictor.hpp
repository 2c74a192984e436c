// SPDX-License-Identifier: BSD-3-Clause
//
// Evictor: blocks of a full part that make room for others.
//
//   cache.P17 A block may be evicted: its room goes to one that passes through and is used more.
//       Only a process that has a block's state word, which its number in it says, changes what the
//       block is; nobody begins an access meanwhile, and the process does not before all accesses
//       that had begun have ended. Each marks its block from before it looks at the state until all
//       is done, its journal entry and its kept bits included (part_users.hpp), so that the marks
//       of all processes tell; so does, of all blocks, whatever uses their bytes for longer: an
//       answer to another node, which is sent from where they stand (part_server.cpp), and
//       persist() and the flush before an fsync, which touch pages and set bits of blocks that were
//       looked at earlier (CachePart::Stay). Write-back has the block's claim while it reads the
//       bytes, and so has the process that evicts it. A wait for marks has a bound; then all stays
//       as it is.
//         Evicting: (1) what is dirty goes to the file, a change as any other (cache.P4,
//       cache.P14); what the part alone has durably is flushed, fence, and the file synchronised
//       (cache.P6); (2) nothing is dirty, leaving or kept, and if any was kept, fence; (3) the
//       block passes through; (4) its room is given back. Until (3) it is present to recovery, and
//       whole; from then on its bytes are in the file. So a crash at any point leaves each
//       acknowledged byte in one of the two, and after another boot no kept bit leads to bytes that
//       are gone, as (2) is durable before (4). What was handed over and not synchronised is as
//       safe as what passes through, and as such waited for (cache.P16): if the file can't be
//       synchronised, that is the failure of the call that asks for it.
//         Bringing in: the block passes through to recovery until all its bytes are here. They are
//       all the file's, also beyond `visible_bytes`: these were written through, or evicted. Its
//       room is where nobody else's can be, as each block has a place of its own in the device:
//       what is handed on is space, and two blocks never share bytes.
//         A process that dies amid this leaves a block that is present, or one that passes through
//       and whose room is discarded (cache.P10).
//
// When that pays: a block that passes through costs something at each access, and giving it room
// costs as much as some thousand of these. So it gets room when it has cost more, as with skis that
// are rented or bought, and only from a block that was used less than a quarter as often since the
// round began; else it has to pay anew. A round ends when all blocks were looked at and too few
// were left that are used less. Where all blocks are used alike, as those of a file that is read
// again and again, nothing is evicted, and what has room keeps it.
//
// Room that nobody else has costs too: memory is given and zeroed, and the block read whole, which
// a file that is read once in large pieces never brings in. So a block that was only read is read
// from the file (cache.P18 of cache_part.hpp), until so many reads have gone there as its room
// costs (`room_price`), or reads of blocks that have room have brought in as much, by this process:
// each pays for one. So what fills blocks costs at most about as much as the reads before it, and
// where all of a file is read in small pieces only the first block waits for its room. A large read
// counts as less than one access: memory is hardly faster than the kernel's own copy of the file.
//
// The uses of present blocks are counted only when evicting has begun, one in 16 as 16. The counts
// are estimates: stores that meet may lose some.
//
// Threads: any. Failure: none; then all stays as it is.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/status.hpp"
#include "cache/block_table.hpp"
#include "cache/part_bytes.hpp"
#include "cache/part_peers.hpp"
#include "cache/part_users.hpp"
#include "cache/write_back.hpp"

namespace perdure {

// A read of b bytes, if that is more, counts as a `small_read_bytes` / b-th of an access.
constexpr std::uint64_t small_read_bytes = 256;

// What a block that passes through has to cost before another makes room for it. An access costs 1,
// and more where bytes are dear.
struct EvictingTerms {
  static constexpr std::uint64_t never = ~std::uint64_t{0};
  static constexpr std::uint64_t as_its_size_says = never - 1;
  std::uint64_t price = 0;  // of one block; 0: as its size says
  // Of what this process passed through before the first block is evicted: a wait for all of the
  // machine's threads (part_users.hpp), some 10 ms.
  std::uint64_t first_price = 50000;
  // What a block has to cost before it gets room that is free, if it is only read.
  std::uint64_t room_price = 0;
};

class Evictor {
 public:
  // All of them outlive it.
  Evictor(PartBytes& bytes, BlockTable& table, PartPeers& peers, PartUsers& users,
          WriteBack& write_back)
      : bytes_(bytes), table_(table), peers_(peers), users_(users), write_back_(write_back) {}

  void set_terms(const EvictingTerms& terms) { terms_ = terms; }

  // Of a present block, when evicting has begun.
  void count_use(std::uint64_t block, std::uint64_t bytes) noexcept;
  // A read of a present block.
  void count_hit(std::uint64_t bytes) noexcept {
    const std::uint64_t more = bytes <= small_read_bytes ? 1 : 0;
    hits_.store(hits_.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
  // Before a read of an absent block, which is counted: its room is not paid for yet.
  bool defers_room(std::uint64_t block, std::uint64_t bytes);
  // After an access that passed through. Evicting is of use only to speed, so nothing of it is an
  // error of that access.
  void pay(std::uint64_t block, std::uint64_t bytes);

  // By this process: blocks that it made give their room to others, and that it gave the room.
  std::uint64_t evicted_blocks() const { return evicted_blocks_.load(std::memory_order_relaxed); }
  std::uint64_t brought_in_blocks() const {
    return brought_in_blocks_.load(std::memory_order_relaxed);
  }

 private:
  bool counts_uses() const { return peers_.has_joined() && !bytes_.with_pool(); }
  bool may_evict() const { return counts_uses() && terms_.price != EvictingTerms::never; }
  FileMedium medium();
  std::uint64_t weight_of(std::uint64_t bytes);
  std::uint64_t price_of_block() const;
  std::uint64_t price_of_room() const;
  bool counts_read(std::uint64_t bytes);
  std::uint64_t uses_in_round(std::uint64_t block) const;
  void set_uses(std::uint64_t block, std::uint64_t uses);
  bool begin();
  void begin_round(std::uint64_t hand);
  void bring_in(std::uint64_t block);
  bool bring_in_held(std::uint64_t block);
  bool make_room(std::uint64_t block);
  std::optional<std::uint64_t> find_victim(std::uint64_t candidate);
  bool evict(std::uint64_t block);
  bool evict_held(std::uint64_t block);
  Status forget_here(std::uint64_t block);
  bool await_users(std::uint64_t block);

  PartBytes& bytes_;
  BlockTable& table_;
  PartPeers& peers_;
  PartUsers& users_;
  WriteBack& write_back_;
  EvictingTerms terms_;
  std::atomic<std::uint64_t> paid_{0};  // for what passed through, by this process
  std::atomic<std::uint64_t> uses_{0};  // of which some are counted
  std::atomic<std::uint64_t> hits_{0};  // that have paid for no room yet
  std::atomic<std::uint64_t> large_reads_{0};
  std::atomic<std::uint64_t> evicted_blocks_{0};
  std::atomic<std::uint64_t> brought_in_blocks_{0};
  std::atomic<int> medium_{-1};  // of the cached file; -1: not asked for
};

}  // namespace perdure
