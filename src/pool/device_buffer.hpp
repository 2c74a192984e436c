// SPDX-License-Identifier: BSD-3-Clause
//
// Device buffer: the application's buffer of an array where an accelerator's driver knows it, and
// the ways of its contents to the copies of the array and back. VersionedArray has one of these in
// place of all that it does with a buffer of the host.
//
//   copy   take() copies the buffer to a snapshot beside it, after which the program's stream goes
//          on; save() transfers that. Without room for a snapshot the stream, or the program, waits
//          for the transfer itself
//   log    take() sums the buffer's pages, compares them with the table of the copy that will be
//          stored over, and has what differs stored, without a snapshot: the stream waits for it
//
// The accelerator transfers straight to the pool's mapping and computes the sums, if the mapping
// can be registered, the checksum is XXH3, and it has taken the kernels. A copy is registered when
// it is used first: at a restart the one that is read, the others by the first save to them. Where
// that is not so, or a copy is refused, all contents pass through a ring in the host's memory, and
// the processor sums them; log saves all. What there is no room for, each 16th commit looks for
// again.
//
// Invariants
//   pool.D1  save() returns success only when the event after the last transfer has passed without
//       an error, and each whole block (log: page) has a sum. What the medium needs to keep it has
//       begun then, except for the caller's fence.
//   pool.D2  Sums are of the bytes that are transferred: those of the snapshot, or of the buffer
//       while the program's stream is held; of a block that is not whole, and wherever the
//       processor computes them, of the bytes that arrived.
//   pool.D3  log: if known_[c], each whole page of copy c has the sum that is in the accelerator's
//       table of c, and in the host's; finish_changes() compares them. It is not so from take() to
//       c until the version is there; nor after a failure, a restart, a change of size or place, or
//       a sum that was not made: the next save to c stores all of it.
//   pool.D4  When a save has failed nothing is stored to the pool any more.
//
// Threads: take() and load() as the pool; save() may be another thread's, beside which only
// wait_until_free() and hold_stream() are called. Failure: as Accelerator says, with the array's
// name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "device/accelerators.hpp"
#include "pmem/device.hpp"
#include "pmem/parallel.hpp"
#include "pool/array_entry.hpp"
#include "pool/array_surroundings.hpp"
#include "pool/checksum_tables.hpp"
#include "pool/page_set.hpp"

namespace perdure {

class DeviceBuffer {
 public:
  // Stores the pages, which are in the host's memory from `from` on, to the working copy.
  using StorePages = std::function<Status(PageRun run, const std::byte* from)>;

  static Result<std::unique_ptr<DeviceBuffer>> open(const ArraySurroundings& surroundings,
                                                    Accelerator& accelerator,
                                                    const ArrayEntry& entry, std::byte* buffer);
  ~DeviceBuffer();
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;

  // The array has that entry now, and its contents are at `buffer`. Nothing is under way.
  Status fit(const ArrayEntry& entry, std::byte* buffer);
  const Accelerator& accelerator() const { return accelerator_; }
  // It is still the memory that it was, and not what the driver has put in its place since.
  bool is_here() const {
    return allocation_ != 0 && accelerator_.allocation_of(buffer_) == allocation_;
  }
  // There was no room for one.
  bool lacks_snapshot() const { return !by_changes_ && !beside_.snapshot.is_there(); }

  Status clear();
  // Fills the buffer with what was stored to the copy, which no version names and nothing sums.
  Status fill(std::uint32_t copy);
  // Fills the buffer with the copy that `entry` names. Code::damaged names the byte range.
  Status load(const ArrayEntry& entry, const CopySums& sums);

  // Takes the contents as they are after what the program's stream has done.
  Status take(std::uint32_t copy);
  // The stream can't be held until they are saved: save() is to be called at once.
  bool must_be_saved_at_once() const { return !direct_ && !beside_.snapshot.is_there(); }
  // Returns when the program may store to the buffer by other ways than its stream. Any thread.
  Status wait_until_free();
  // The program's stream, which was named since the last take(), waits for the same.
  Status hold_stream();
  // Brings the copy of the last take() up to date (pool.D1). Returns the bytes that were stored.
  Result<std::uint64_t> save(std::uint32_t copy, const CopySums& sums, const StorePages& store);
  // The version of the last save() is there, or is not.
  void commit(std::uint32_t copy);
  void retract() { saved_ = false; }

 private:
  // What is taken of the accelerator's memory.
  struct Beside {
    AcceleratorMemory snapshot;
    AcceleratorMemory sums;                 // of units
    AcceleratorMemory list;                 // log: which changed; their count is at the end
    std::vector<AcceleratorMemory> tables;  // log: by copy
  };

  DeviceBuffer(const ArraySurroundings& surroundings, Accelerator& accelerator)
      : with_(surroundings), accelerator_(accelerator) {}

  Status ended(Status status);
  bool reach(std::uint32_t copy);
  Status choose_way(bool may_register = true);
  Status make_room(const ArrayEntry& entry);
  Status look_for_room();
  bool sums_here(const ArrayEntry& entry) const;
  bool lists_changes() const;
  Accelerator::Unit unit() const {
    return by_changes_ ? Accelerator::Unit::page : Accelerator::Unit::block;
  }
  std::uint64_t whole_units() const { return entry_.size_bytes / Accelerator::bytes_of(unit()); }
  std::byte* copy_at(std::uint32_t copy) const {
    return with_.device.base() + entry_.copy_offset(copy);
  }
  DeviceAddress contents() const {
    return beside_.snapshot.is_there() ? beside_.snapshot.at() : address_of(buffer_);
  }
  ChangeTables tables_of(std::uint32_t copy) const;
  std::uint64_t* host_sums() const { return reinterpret_cast<std::uint64_t*>(staging_.at()); }
  Status check_none_failed() const;
  Status transfer(std::uint32_t copy);
  Status transfer_from(std::uint32_t copy, std::uint64_t begin);
  Status store_changes(std::uint32_t copy);
  Result<std::uint64_t> finish_transfer(std::uint32_t copy, const CopySums& sums);
  Result<std::uint64_t> finish_changes(std::uint32_t copy, const CopySums& sums);
  Result<PageSet> stored_pages();
  bool has_all_sums() const;
  Status check_others(const PageSet& stored, const std::vector<std::uint64_t>& sums) const;
  Status fetch_sums();
  void take_sum_of(std::uint32_t copy, std::uint64_t index, std::vector<std::uint64_t>& sums) const;
  void sum_blocks(const CopySums& sums, const PageSet& pages) const;
  Status fill_straight(std::uint32_t copy);
  Status load_and_sum(const ArrayEntry& entry, const CopySums& sums);

  const ArraySurroundings with_;  // with accelerators
  Accelerator& accelerator_;
  ArrayEntry entry_;
  std::byte* buffer_ = nullptr;
  std::uint64_t allocation_ = 0;
  bool registers_ = false;   // what is used of the mapping, and nothing was refused so far
  bool direct_ = false;      // they are transferred to, and the accelerator makes the sums
  bool by_changes_ = false;  // log: and only to the pages that changed
  Beside beside_;
  std::vector<bool> known_;  // pool.D3
  PinnedMemory staging_;     // sums and list on their way to the host
  AcceleratorEvent free_;    // the buffer may be stored to
  AcceleratorEvent done_;
  std::uint64_t failed_waits_ = 0;  // at the last take()
  std::uint32_t lacking_ = 0;       // how many take() have lacked room
  bool all_ = false;                // log: take() had all stored
  // The last save() succeeded, log: with a sum of each page, and its version is not there yet.
  bool saved_ = false;
};

}  // namespace perdure
