// SPDX-License-Identifier: BSD-3-Clause
//
// Versioned array: one named array of a pool, its copies on the device, and the way its mode brings
// the application's contents into the copy that the next version will name.
//
//   copy   the application has one buffer in DRAM; save() copies it to the working copy
//   twin   the application writes the working copy itself; save() flushes it. With a TwinWriter
//          that does the saving, and an array that it calls unchanged has nothing to save
//   log    as copy, but save() copies only pages that the working copy lacks: those that changed
//          since the last version, and those that changed while other copies were the working one.
//          What changed the tracker finds (page_tracker.hpp), or mark() names, or a comparison with
//          the committed copy. A page is a sixteenth of a block; or the whole block, where its
//          checksum is not one of pages (block_checksum.hpp)
//          An array that is marked, and was not since the last version, takes no part in the next
//          one (is_idle()), which names the committed copy, as that one did
//   (Where the application's buffer is memory of a GPU, device_buffer.hpp does the saving of both.)
//   flush  one copy, which the application writes and save() flushes; it has no versions
//
// An array may get another size between two versions (resize()): in the extent that it has, or in
// another one.
//
// Its parts: array_memory.hpp, where the contents are; array_copies.hpp, which copy is whose;
// changed_pages.hpp, what of it log mode copies; checksum_tables.hpp; participation.hpp.
//
// Invariant
//   pool.A2  After save() and a fence the working copy is the array's contents, and its checksum
//       table is that of those contents. The next version names the working copy; but if an array
//       with a writer is unchanged, it names the committed copy, which holds the contents.
//
// Threads: one at a time, but save() may run beside readers of the buffer, and, after stage(),
// beside writers of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "device/device_functions.hpp"
#include "pmem/device.hpp"
#include "pmem/parallel.hpp"
#include "pmem/region.hpp"
#include "pool/array_copies.hpp"
#include "pool/array_memory.hpp"
#include "pool/array_surroundings.hpp"
#include "pool/array_table.hpp"
#include "pool/catalogue.hpp"
#include "pool/changed_pages.hpp"
#include "pool/checked_copies.hpp"
#include "pool/checksum_tables.hpp"
#include "pool/participation.hpp"
#include "pool/rank_rule.hpp"
#include "pool/twin_stores.hpp"
#include "pool/twin_writer.hpp"

namespace perdure {

class Accelerator;   // device/accelerator.hpp
class DeviceBuffer;  // device_buffer.hpp

struct ArrayOptions {
  void* buffer = nullptr;  // copy and log: the application's, perhaps on a GPU; nullptr: ours
  bool marks = false;      // log: changed blocks are named by mark()
  bool compare = false;    // log: changed blocks are found by comparing with the working copy
  bool staged = false;     // copy, and log with compare: stage() will be called
  // A new array begins with what the caller's buffer holds, instead of zeros.
  bool keep_contents = false;
  std::uint32_t part = 0;        // of the arrays of one name
  TwinWriter* writer = nullptr;  // twin without checksums; outlives the array
  bool spare_copy = false;       // a new array gets one more copy: move_on()
  // The program stores to the array through working() alone: PERDURE_CHECK may guard its copies.
  bool of_program = false;
  RankRule ranks = RankRule::none;            // what the program says of it
  TrackerKind tracker = TrackerKind::chosen;  // log; the choice is for measurements
  Accelerators* accelerators = nullptr;       // the pool's; null: buffers are the host's
  const DeviceFunctions* device = nullptr;    // how the buffer is reached, where no driver tells
};

class VersionedArray {
 public:
  // `entry` says where the copies are; the device is large enough. `slots` of the pool.
  static Result<std::unique_ptr<VersionedArray>> create(Device& device, ParallelWriter& writer,
                                                        const ArrayEntry& entry,
                                                        const Geometry& geometry,
                                                        const ArrayOptions& options);
  ~VersionedArray();
  VersionedArray(const VersionedArray&) = delete;
  VersionedArray& operator=(const VersionedArray&) = delete;

  const std::string& name() const { return entry_.name; }
  std::uint32_t part() const { return entry_.part; }
  const ArrayEntry& entry() const { return entry_; }  // names the committed copy
  std::uint64_t size_bytes() const { return entry_.size_bytes; }
  ArrayMode mode() const { return entry_.shape.mode; }
  bool committed() const { return life_ == Life::committed; }  // the head names it, where it is
  // The head names it, perhaps in an extent that it left.
  bool is_held() const { return life_ == Life::committed || life_ == Life::left; }
  bool staged() const { return memory_.is_staged(); }
  // log with marks: none since the last version, so that the next one needs nothing of it.
  bool is_idle() const { return participation_.is_idle(); }
  bool is_marked() const { return changes_ && changes_->by_marks(); }
  // `list`, which outlives the array, gets it under `number` when it is idle no more.
  using Woken = Participation::Woken;
  void report_to(Woken& list, std::uint64_t number);
  void report_to_nobody() { participation_.report_to_nobody(); }

  // It takes part in a version, and is which of the participants; marks from now on are the next
  // one's.
  void take_part(std::uint64_t version, std::size_t place);
  std::uint64_t part_of_version() const { return participation_.version(); }
  std::size_t place() const { return participation_.place(); }

  // The places on the device. Where they are changes only with start_empty and start_restored.
  std::uint32_t copies() const { return entry_.copies; }
  std::uint64_t copy_offset(std::uint32_t copy) const { return entry_.copy_offset(copy); }
  std::uint32_t working_copy() const { return copies_.working(); }
  std::uint32_t consistent_copy() const { return entry_.copy; }

  // The version in `slot` names `copy` of this array; no_copy: it names none, or there is none.
  static constexpr std::uint32_t no_copy = ArrayCopies::none;
  // One more than the pool has slots.
  bool has_spare_copy() const { return entry_.copies > copies_.named().size(); }
  void note_named(std::uint32_t slot, std::uint32_t copy) { copies_.note_named(slot, copy); }
  const std::vector<std::uint8_t>& named() const { return copies_.named(); }
  // Up to which change of the retained versions that is so (retained.hpp).
  std::uint64_t seen() const { return copies_.seen(); }
  void set_seen(std::uint64_t change) { copies_.set_seen(change); }

  // A new array, or one that the restored version lacks: buffer and copies are zero, except those
  // that are named. Flush mode then keeps what it has.
  Status start_empty(const ArrayEntry& entry);
  // The pool did not restart after all: what the program gave is what a new array begins with.
  void undo_start() {
    if (life_ == Life::started) life_ = Life::opened;
  }
  // A new array that has contents from elsewhere: `fill` stores them, all of them or after
  // clear_first(). Nothing of it need be durable: the next version has it.
  Status start_filled(const ArrayEntry& entry, const std::function<Status(VersionedArray&)>& fill);
  // Within `fill`, or in place of it after start_empty(). The buffer, or the twin writer's memory;
  // null: there is none, or it is memory of a GPU, and what is stored goes to the working copy by
  // store_first().
  std::byte* first_buffer() const;
  void store_first(std::uint64_t first_byte, std::span<const std::byte> bytes);
  // Bytes of a file; false: not in this way.
  bool copy_first(std::uint64_t first_byte, int fd, std::uint64_t from, std::uint64_t count) {
    return first_buffer() == nullptr &&
           with_.device.copy_from(entry_.copy_offset(working_copy()) + first_byte, fd, from, count);
  }
  void clear_first();
  // twin without a writer, after that: what was stored is the consistent copy, as if a version
  // named it, and another one is the working copy.
  void show_first();
  // An array of the pool: takes the entry of the restored version, verifies the copy against its
  // checksums (if it has them) and fills the buffer. Code::damaged names the byte range.
  Status start_restored(const ArrayEntry& entry);

  std::byte* working();
  const std::byte* consistent() const;

  Status mark(std::uint64_t first_byte, std::uint64_t count_bytes);
  // twin. `source` may be memory of a GPU, where the program has named its stream.
  Status write(std::uint64_t first_byte, std::uint64_t count_bytes, const void* source);
  // What write() has begun has arrived then.
  Status settle_writes();

  // log: finds what changed since the last call and protects it again. Before save().
  Status collect_changes();
  bool is_tracked() const { return changes_ && changes_->is_tracked(); }
  // Its buffer is memory of a GPU; and if so, whether there was room for a snapshot beside it.
  bool on_device() const { return device_buffer_ != nullptr; }
  // And its address says nothing outside of the program's functions.
  bool is_by_functions() const;
  bool lacks_snapshot() const;
  // Then the version under way has what it needs of the buffer before it is saved. Any thread.
  Status wait_until_free();
  // The program's stream, another one than when the version began, does nothing before that.
  Status hold_stream();
  // Whether stores after the last collect_changes() may go unseen: then the next version compares.
  void note_unseen(bool unseen) {
    if (changes_) changes_->note_unseen(unseen);
  }
  // The application's own, or null.
  const std::byte* given_buffer() const { return memory_.given(); }
  // Its memory goes (freed_buffers.hpp), or may go by realloc(). From then on there is nothing to
  // commit. Any thread. `how` is for good: "freed".
  void lose_buffer(const char* how);
  void move_buffer();
  // It is closed, and saved: what is stored to the buffer from now on concerns nobody.
  void stop_following() {
    if (changes_) changes_->leave();
  }
  void end_move_of_buffer(bool kept);
  // Code::wrong_state says what became of it.
  Status check_buffer_here() const;

  // Whether it can become an array of that shape.
  Status check_resizable(const ArrayShape& shape) const;
  // From the next version on it is as `entry` says, whose extent is its own, or a new one. Its
  // elements stay, in row-major order, as far as there is room; new ones are zero. `buffer`: where
  // the application's own lies now, with the contents; null: ours from now on. Not while the
  // version under way reads it. On an error all is as before. Of one with a writer no copy that
  // lies elsewhere then holds anything; the others hold what they held.
  Status resize(const ArrayEntry& entry, void* buffer);
  // Given anew by the application, or it has none: then restore() may change its size.
  bool follows(const ArrayShape& shape) const {
    return given_buffer() == nullptr && check_resizable(shape).ok();
  }

  // The next save() takes the contents of now, whatever is stored to the buffer until then.
  void stage();
  // The writer stores to the contents of the version after the one under way: what was saved stays
  // where it is, and another copy, which neither is nor will be named, is the working one. Once in
  // a version. False: there is none, and the version under way must be finished first.
  bool move_on();
  // The writer has the next version's contents in `copy`, which no version names.
  void work_on(std::uint32_t copy);
  bool has_writer() const { return twin_writer_ != nullptr; }
  // Another one for the one that it had; no version is under way, or it names what that one saved.
  void set_writer(TwinWriter& writer) { twin_writer_ = &writer; }
  // Brings the working copy up to date (A2) except for the caller's fence. Returns bytes written.
  Result<std::uint64_t> save();
  // Makes the entry of this array in the next version name the working copy. After save().
  void name_next(ArrayTable& table, ArrayId id) const {
    table.name_copy(id, copy_of_next(), checksum_of_next());
  }
  // The version was committed, and names what name_next() said.
  void commit(const LeafEntry& named);
  // It was not: what the last save() stored may not be durable.
  void retract();
  // Picks the working copy anew (A1). After the versions that there are have changed.
  void choose_working();

 private:
  VersionedArray(const ArraySurroundings& surroundings, const ArrayEntry& entry,
                 std::uint32_t slots, const ArrayOptions& options);

  Status check_options(const ArrayOptions& options) const;
  Status allocate(const ArrayOptions& options);
  Status allocate_buffer(const ArrayOptions& options);
  Status make_checked_copies();
  Status take_entry(const ArrayEntry& entry);
  Status begin_empty(const ArrayEntry& entry);
  Status check_buffer(std::byte* buffer, std::uint64_t size_bytes);
  Status take_device_buffer(Accelerator& accelerator, std::byte* buffer);
  Status resize_device_buffer(std::byte* given, const ArrayEntry& entry);
  Status named(const Status& status) const;
  Status watch();
  Status follow(std::byte* at, std::uint64_t size_bytes);
  bool is_paged() const { return changes_ && changes_->by_tracker(); }
  void make_tables();
  Status fit();
  Status fit_buffer();
  Status check_given(std::byte* given, std::uint64_t size_bytes);
  Status resize_buffer(std::byte* given, const ArrayEntry& entry, bool& other_contents);
  void take_size(const ArrayEntry& entry, bool other_contents);
  void keep_copy(const std::byte* from, std::uint64_t bytes, std::uint32_t copy);
  Result<std::uint64_t> save_copy();
  Result<std::uint64_t> save_twin();
  Result<std::uint64_t> save_log();
  bool unchanged() const;
  std::uint32_t copy_of_next() const;
  std::uint64_t checksum_of_next() const;
  Result<std::uint64_t> save_from_device();
  Status save_pages(PageRun run, const std::byte* from);
  void store_table() { tables_.store(with_.device, entry_, working_copy()); }
  std::byte* seen_address(std::uint32_t copy) const {
    return checked_ ? checked_->at(copy) : copy_address(copy);
  }
  std::byte* copy_address(std::uint32_t copy) const {
    return with_.device.base() + entry_.copy_offset(copy);
  }
  std::uint64_t unit_bytes() const { return perdure::unit_bytes(entry_, with_.block_bytes); }

  // left: the head names it in an extent that it left.
  enum class Life : std::uint8_t { opened, started, left, committed };
  enum class Resized : std::uint8_t { no, in_place, moved };

  const ArraySurroundings with_;
  ArrayEntry entry_;
  const bool resizable_;
  ArrayMemory memory_;                              // copy and log
  std::unique_ptr<DeviceBuffer> device_buffer_;     // what that is, if it is a GPU's
  std::optional<std::uint64_t> saved_from_device_;  // by collect_changes()
  std::optional<ChangedPages> changes_;             // log, but not on a GPU
  ChecksumTables tables_;
  ArrayCopies copies_;
  TwinWriter* twin_writer_ = nullptr;
  std::unique_ptr<CheckedCopies> checked_;  // twin, with PERDURE_CHECK: where the program stores
  TwinStores stores_;                       // twin: to the working copy, by write()
  Participation participation_;
  Life life_ = Life::opened;
  Resized resized_ = Resized::no;  // since it took part in a version
};

}  // namespace perdure
