// SPDX-License-Identifier: BSD-3-Clause
//
// Cache part: what one node keeps of a cached file, in a device that all processes of the node map.
//
// What a block is (absent, being filled, present, or passing through) the block table says. Readers
// and writers copy from and to present blocks; no lock is held, no message sent, no system call
// made.
//
// Crash argument. What a process stored survives its death (the mapping is shared), in the order in
// which it stored (x86: in program order; otherwise by the releases below). Each step is argued
// where it is taken: cache.P1 and cache.P12 in block_table.hpp, cache.P16 there, cache.P19 in
// pass_through.hpp, cache.P4, cache.P5 and cache.P7 in write_back.hpp, cache.P8, cache.P9 and
// cache.P13 in part_versions.hpp, cache.P10 and cache.P11 in part_peers.hpp, cache.P14 in
// change_record.hpp, cache.P15 in part_contradiction.hpp, cache.P17 in evictor.hpp, cache.P20 in
// part_pieces.cpp; the others here.
//   cache.P2  A write stores (a) the bytes, (b) the size, (c) the grains' dirty bits, and is then
//       acknowledged. So every grain of an acknowledged write is dirty, or was handed on by
//       cache.P4.
//   cache.P3  A small write is intended first, in the journal (part_journal.hpp): it is whole or
//       absent.
// What was only stored does not survive a power failure. For that:
//   cache.P6  A durable write flushes (1) its intention, fence, (2) bytes, and the whole of each
//       grain that is not kept yet, fence, (3) the size and the grains' `kept` bits, fence, (4)
//       that nothing is intended any more, fence. persist() does (2) and (3) for all dirty grains
//       at once. Kept bits are cleared only with what set_size() cuts off or an eviction hands over
//       (cache.P17). So a kept grain must never be durably older than the cached file: what is kept
//       and leaving is flushed, with a fence, before fsync.
//
//   cache.P18 A block that is absent may be read from the cached file, and stays absent
//       (Evictor::defers_room()). What was read counts if the block is still absent after it: it is
//       absent only until its first write, so none has been acknowledged before. Else it is read
//       again.
//
// Threads: read, write, fill, write_back and the words: any number, in any number of processes;
// what MPI calls conflicting accesses may tear each other, not the part. Failure: nothing is
// acknowledged that is not done; a write that failed may have stored some of its blocks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>

#include "base/status.hpp"
#include "cache/backing_file.hpp"
#include "cache/block_table.hpp"
#include "cache/change_record.hpp"
#include "cache/evictor.hpp"
#include "cache/part_bytes.hpp"
#include "cache/part_contradiction.hpp"
#include "cache/part_journal.hpp"
#include "cache/part_owners.hpp"
#include "cache/part_peers.hpp"
#include "cache/part_room.hpp"
#include "cache/part_users.hpp"
#include "cache/part_versions.hpp"
#include "cache/pass_through.hpp"
#include "cache/piece_list.hpp"
#include "cache/shared_bytes.hpp"
#include "cache/shared_pointers.hpp"
#include "cache/undo_log.hpp"
#include "cache/write_back.hpp"
#include "parts/ownership.hpp"
#include "parts/part_facts.hpp"
#include "parts/part_format.hpp"
#include "parts/part_layout.hpp"
#include "pmem/device.hpp"

namespace perdure {

// When a write is acknowledged.
enum class Acknowledge : std::uint8_t {
  async,    // handed over: at once on this node; to another node perhaps still under way
  sync,     // stored in the part of its node: survives the death of processes
  durable,  // flushed as well: survives power failure, where the device does
};

class CachePart {
 public:
  // Makes an empty part on a device of part_file_bytes(); durable when it returns.
  static Status format(Device& device, const PartIdentity& identity, const PartGeometry& geometry,
                       std::uint64_t file_bytes);
  // Joins the processes that use the part.
  static Result<std::unique_ptr<CachePart>> attach(std::unique_ptr<Device> device);
  ~CachePart();
  CachePart(const CachePart&) = delete;
  CachePart& operator=(const CachePart&) = delete;

  const PartHeaderFormat& header() const { return bytes_.header(); }
  const Layout& layout() const { return bytes_.layout(); }
  std::uint32_t node() const { return header().node; }
  Device& device() const { return *device_; }

  // Where absent blocks come from and dirty ones go; before the first read or write.
  void set_backing(const BackingFile* backing) {
    bytes_.set_file(backing);
    changes_.set_file(backing);
    through_.set_file(backing);
  }
  const BackingFile* backing() const { return bytes_.file(); }
  // Is called with a sentence by the process that first finds no room (cache.P16); before the first
  // access.
  void set_teller(std::function<void(const std::string&)> tell) {
    room_.set_teller(std::move(tell));
  }

  // cache.P10. Takes a number, before anything else that changes the part (PartPeers::join()). Not
  // for parts that one process has alone.
  Status join_owners(FileHandle file);
  // After the last access; the destructor does it too.
  void leave_owners();
  // Whom to ask about the dead. What they left behind is cleaned up with the backing.
  PartPeers& peers() { return peers_; }
  OwnersLife owners_life(const FileHandle& file) const {
    return PartOwners::life_of(file, state_->owners);
  }

  // `bytes` bytes of the cached file from `offset` on, all of them kept by this node.
  Status read(std::uint64_t offset, void* to, std::uint64_t bytes);
  Status write(std::uint64_t offset, const void* from, std::uint64_t bytes, Acknowledge when);
  // The same for a range within one block that is present and kept by this node, below the size
  // that the part knows; false: nothing was done, call read() or write(). Writes small ranges that
  // are acknowledged when they are stored. The path that counts: no lock, no call, no Status.
  bool try_read(std::uint64_t offset, void* to, std::uint64_t bytes) {
    const Place place = place_of(layout(), offset);
    const std::uint64_t within = offset & (layout().block_bytes - 1);
    if (place.node != node()) return false;
    if (within + bytes > layout().block_bytes || offset + bytes > size_bytes()) return false;
    const PartUsers::ShortMark mark(users_, place.block);
    if (!table_.is_present(place.block)) return false;
    copy_from_shared(to, bytes_.of(place.block) + within, bytes);
    evictor_.count_hit(bytes);
    if (users_.is_evicting()) [[unlikely]]
      evictor_.count_use(place.block, bytes);
    return true;
  }
  // The same for a range of any blocks, where this node keeps the whole file.
  bool try_read_any(std::uint64_t offset, void* to, std::uint64_t bytes) {
    if (layout().nodes != 1 || offset + bytes > size_bytes()) return false;
    return read(offset, to, bytes).ok();
  }
  bool try_write(std::uint64_t offset, const void* from, std::uint64_t bytes);
  // All pieces of a run, of this node's: `to` or `from` has their bytes, one after another.
  Status read_pieces(const PiecesFormat& run, std::byte* to);
  Status write_pieces(const PiecesFormat& run, const std::byte* from, Acknowledge when);
  // Tells the processor that one of these comes, as early as can be; any `offset` will do.
  void expect(std::uint64_t offset) const {
    if (layout().nodes == 1) __builtin_prefetch(bytes_.hint_of(offset));
  }
  PartJournal& journal() { return journal_; }

  // Makes the blocks of a range present, where this node keeps them. False: some pass through.
  Result<bool> fill(std::uint64_t offset, std::uint64_t bytes);

  // cache.P17: as long as one exists, no block is evicted. Not around calls that may have to wait.
  class Stay;
  // Where `bytes` bytes of one block stand that does not pass through, made present; as long as a
  // Stay exists, they move with set_size() only.
  Result<const std::byte*> view(std::uint64_t offset, std::uint64_t bytes);

  // The size of the file, as far as this part knows.
  std::uint64_t size_bytes() const { return bytes_.size_bytes(); }
  void grow_size(std::uint64_t bytes) { bytes_.grow_size(bytes); }
  // By one process of the node, while none reads or writes.
  Status set_size(std::uint64_t bytes);

  // Hands what is dirty to the cached file and, with `sync`, waits until it has it durably. Any
  // number of processes may do it at once, and share the work; each returns when all that was
  // dirty when it came is handed over. Those that begin at different `turn`s meet later.
  Result<WriteBackTally> write_back(std::uint64_t turn, bool sync) {
    return write_back_.run(turn, sync);
  }
  // For EarlyWriteBack: how many blocks there are to look at; what of one is dirty; hand that over;
  // wait until the file has what was handed over.
  Result<std::uint64_t> blocks_looked_at() { return table_.touched_of(bytes_.blocks_in_use()); }
  bool is_passing() const { return table_.is_passing(); }
  Grains dirty(std::uint64_t block) const {
    return table_.is_here(block) ? table_.dirty(block) : Grains{};
  }
  Result<std::uint64_t> write_early(std::uint64_t block) { return write_back_.run_early(block); }
  // Of blocks that ever had room or were to have it.
  std::uint64_t touched_bytes() const { return table_.touched() * layout().block_bytes; }
  // Makes durable in the part all that is dirty.
  Status persist();

  // cache.P14. What changes the cached file without this part (a cut, room made ahead, a close that
  // hands over what a network file system holds) is between begin() and end() too.
  ChangeRecord& changes() { return changes_; }
  const ChangeRecord& changes() const { return changes_; }
  // cache.P15: the bytes of the cached file can't be what the job left there. Within one boot.
  Result<bool> contradicts_file() const {
    return contradicts_part(bytes_, table_, versions_, journal_);
  }
  // Gives the backing all that is present here; false: the cached file has bytes that are not.
  Result<bool> write_present() const { return write_back_.write_present(); }

  SharedPointers& pointers() { return pointers_; }
  // Of those; -1: none is free.
  int take_pointer();
  // The lock of atomic mode; of use on node 0.
  // `owner` is 0 for a thread of this process, or a number of another's choice below 2^54, which
  // is held on its behalf by this process.
  bool try_lock(std::uint64_t owner);
  bool unlock(std::uint64_t owner);

  // Of a file that is committed with a pool. `log` keeps what its grains hold at its versions.
  void set_undo_log(std::unique_ptr<UndoLog> log) { versions_.set_log(std::move(log)); }
  bool with_pool() const { return bytes_.with_pool(); }
  UndoGeometry undo_geometry() const { return {header().blocks, header().block_bytes}; }
  // After persist(), by each process before `version` is decided: all of it is durable here.
  Status set_prepared(std::uint64_t version) { return versions_.set_prepared(version); }
  // From now on what changes comes after `version`, with which the file had at least `file_bytes`
  // bytes. Returns how many it had, as is noted here.
  Result<std::uint64_t> set_base_version(std::uint64_t version, std::uint64_t file_bytes) {
    return versions_.set_base(version, file_bytes);
  }
  // Whether it can go back to the version, and why not.
  Status check_goes_back(const PoolVersion& version) const {
    return versions_.check_goes_back(version);
  }
  // cache.P9: before recover(), if the file is in a group.
  Status roll_back(const PoolVersion& version);
  PartFact fact() const { return fact_of(header(), *state_); }
  // Durable when it returns: from now on the file can't do without this part, or it can again.
  Status set_in_use(bool in_use) { return versions_.set_in_use(in_use); }
  // cache.P13: bytes of one block as they were at `version`, which is the base version. Any thread.
  // Code::wrong_state if it is not, or no longer.
  Status read_at(std::uint64_t version, std::uint64_t block, std::uint64_t within,
                 std::span<std::byte> out) {
    return versions_.read_at(version, block, within, out);
  }

  // Recovery, by one process alone: does intended writes again and writes back all that the
  // cached file may lack (cache.P5, cache.P7). `same_boot`: nothing that was stored can have been
  // lost.
  Result<WriteBackTally> recover(bool same_boot) { return write_back_.recover(same_boot); }
  // What recover() would write.
  std::uint64_t unsaved_bytes(bool same_boot) const { return write_back_.unsaved_bytes(same_boot); }

  // What this process read into blocks.
  std::uint64_t filled_bytes() const {
    return room_.filled_bytes() + evictor_.brought_in_blocks() * layout().block_bytes;
  }
  // cache.P16: read and written by this process; and how much of the file is in such blocks.
  std::uint64_t passed_bytes() const { return through_.bytes(); }
  std::uint64_t through_bytes() const { return room_.through_bytes(); }
  // cache.P17: blocks that this process made give their room to others; and all processes did.
  std::uint64_t evicted_bytes() const { return evictor_.evicted_blocks() * layout().block_bytes; }
  std::uint64_t evicted_bytes_of_all() const {
    return word(state_->evicted_blocks).load(std::memory_order_relaxed) * layout().block_bytes;
  }
  void set_evicting(const EvictingTerms& terms) { evictor_.set_terms(terms); }

 private:
  CachePart(std::unique_ptr<Device> device, const PartHeaderFormat& header);
  Status clean_up_after(std::uint32_t number);
  Status clean_up_block(std::uint64_t block, std::uint32_t number);
  Status redo(JournalFormat& entry);

  Result<bool> read_absent(std::uint64_t block, std::uint64_t within, std::byte* to,
                           std::uint64_t bytes);
  Status read_block(std::uint64_t block, std::uint64_t within, std::byte* to, std::uint64_t bytes);
  Status write_small(std::uint64_t offset, const std::byte* from, std::uint64_t bytes,
                     Acknowledge when);
  Status write_into(std::uint64_t block, std::uint64_t within, const std::byte* from,
                    std::uint64_t bytes);
  Status write_block(std::uint64_t block, std::uint64_t within, const std::byte* from,
                     std::uint64_t bytes, Acknowledge when);
  Result<bool> write_whole(std::uint64_t block, const std::byte* from, std::uint64_t bytes,
                           Acknowledge when);
  Status write_through(std::uint64_t block, std::uint64_t within, const std::byte* from,
                       std::uint64_t bytes, Acknowledge when);
  Status write_small_to_two(std::uint64_t offset, const std::byte* from, std::uint64_t bytes,
                            Acknowledge when, JournalFormat& entry);
  static Status declare(PartJournal::Intention& intention, Acknowledge when);
  Status persist_blocks(std::uint64_t blocks, std::uint64_t version);
  Status write_run(bool here, std::uint64_t block, std::uint64_t within, const std::byte* from,
                   std::uint64_t bytes, Acknowledge when);
  Status write_large(std::uint64_t block, std::uint64_t within, const std::byte* from,
                     std::uint64_t bytes);
  void finish_write(std::uint64_t block, std::uint64_t within, std::uint64_t bytes);
  void finish_pieces(std::uint64_t block, std::uint64_t within, const PiecesFormat& run,
                     std::uint64_t count);
  Result<bool> write_words(std::uint64_t offset, const PiecesFormat& run, std::uint64_t count,
                           const std::byte* from, Acknowledge when);
  bool try_read_pieces(std::uint64_t offset, const PiecesFormat& run, std::uint64_t count,
                       std::byte* to);
  Status keep(std::uint64_t block, std::uint64_t within, std::uint64_t bytes);

  std::unique_ptr<Device> device_;
  PartBytes bytes_;
  PartStateFormat* state_;
  PartPeers peers_;
  BlockTable table_;
  PartUsers users_;
  PartJournal journal_;
  ChangeRecord changes_;
  WriteBack write_back_;
  PartVersions versions_;
  PartRoom room_;
  Evictor evictor_;
  SharedPointers pointers_;
  PassThrough through_;
};

class CachePart::Stay {
 public:
  explicit Stay(const CachePart& part) : mark_(part.users_) {}

 private:
  PartUsers::Mark mark_;
};

}  // namespace perdure
