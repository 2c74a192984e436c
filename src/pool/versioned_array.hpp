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
// Invariants
//   pool.A1  A copy that the head or a retained version names is never stored to (flush: there is
//       none). The working copy is the lowest that none of them names: it depends on nothing else,
//       so that it has the same number on all ranks that hold the same versions.
//       (Not so arrays that are marked, to whose copies only their own rank stores. Nor arrays with
//       a writer, which may be unchanged on one rank and changed on another,
//       and whose writer may have begun the version after the one under way (move_on()): they keep
//       their working copy while nothing names it. Nobody but their own rank stores to them.)
//   pool.A2  After save() and a fence the working copy is the array's contents, and its checksum
//       table in `tables_` is that of those contents. The next version names the working copy; but
//       if an array with a writer is unchanged, it names the committed copy, which holds the
//       contents.
//   pool.A3  log: a page in which copy c differs from the buffer, or whose checksum in
//       page_sums_[c] is not known, is in marked_, in changed_ or in stale_[c], or the tracker will
//       say it, or the next save() will find it by comparing. So all others are in copy c as they
//       are in the buffer, and a block's checksum is made of theirs and of those that are copied.
//
// Threads: one at a time, but save() may run beside readers of the buffer, and, after stage(),
// beside writers of it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
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
#include "pool/array_buffer.hpp"
#include "pool/array_table.hpp"
#include "pool/block_checksum.hpp"
#include "pool/catalogue.hpp"
#include "pool/checked_copies.hpp"
#include "pool/copy_check.hpp"
#include "pool/page_set.hpp"
#include "pool/page_tracker.hpp"
#include "pool/rank_rule.hpp"
#include "pool/twin_writer.hpp"

namespace perdure {

class Accelerator;   // device/accelerator.hpp
class Accelerators;  // device/accelerators.hpp
class DeviceBuffer;  // device_buffer.hpp
struct CopySums;

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
  bool committed() const { return committed_; }  // the head names it
  bool staged() const { return staging_.is_there(); }
  // log with marks: none since the last version, so that the next one needs nothing of it.
  bool is_idle() const { return idle_; }
  bool is_marked() const { return marks_; }
  // `list`, which outlives the array, gets it under `number` when it is idle no more.
  using Woken = std::map<std::uint64_t, VersionedArray*>;
  void report_to(Woken& list, std::uint64_t number);

  // It takes part in a version, and is which of the participants; marks from now on are the next
  // one's.
  void take_part(std::uint64_t version, std::size_t place) {
    part_of_version_ = version;
    place_ = place;
    idle_ = marks_;
    resized_ = Resized::no;
    if (checked_) checked_->allow_none();
  }
  std::uint64_t part_of_version() const { return part_of_version_; }
  std::size_t place() const { return place_; }

  // The places on the device. Where they are changes only with start_empty and start_restored.
  std::uint32_t copies() const { return entry_.copies; }
  std::uint64_t copy_offset(std::uint32_t copy) const { return entry_.copy_offset(copy); }
  std::uint32_t working_copy() const { return working_copy_; }
  std::uint32_t consistent_copy() const { return entry_.copy; }

  // The version in `slot` names `copy` of this array; no_copy: it names none, or there is none.
  static constexpr std::uint32_t no_copy = 255;
  // One more than the pool has slots.
  bool has_spare_copy() const { return entry_.copies > named_.size(); }
  void note_named(std::uint32_t slot, std::uint32_t copy) {
    named_[slot] = static_cast<std::uint8_t>(copy);
  }
  const std::vector<std::uint8_t>& named() const { return named_; }
  // Up to which change of the retained versions that is so (retained.hpp).
  std::uint64_t seen() const { return seen_; }
  void set_seen(std::uint64_t change) { seen_ = change; }

  // A new array, or one that the restored version lacks: buffer and copies are zero, except those
  // that are named. Flush mode then keeps what it has.
  Status start_empty(const ArrayEntry& entry);
  // A new array that has contents from elsewhere: `fill` stores them, all of them or after
  // clear_first(). Nothing of it need be durable: the next version has it.
  Status start_filled(const ArrayEntry& entry, const std::function<Status(VersionedArray&)>& fill);
  // Within `fill`, or in place of it after start_empty(). The buffer; null: there is none, and what
  // is stored goes to the working copy by store_first().
  std::byte* first_buffer() const { return buffer_; }
  void store_first(std::uint64_t first_byte, std::span<const std::byte> bytes);
  // Bytes of a file; false: not in this way.
  bool copy_first(std::uint64_t first_byte, int fd, std::uint64_t from, std::uint64_t count) {
    return buffer_ == nullptr &&
           device_.copy_from(entry_.copy_offset(working_copy_) + first_byte, fd, from, count);
  }
  void clear_first();
  // twin, after that: what was stored is the consistent copy, as if a version named it, and
  // another one is the working copy.
  void show_first();
  // An array of the pool: takes the entry of the restored version, verifies the copy against its
  // checksums (if it has them) and fills the buffer. Code::damaged names the byte range.
  Status start_restored(const ArrayEntry& entry);

  std::byte* working();
  const std::byte* consistent() const;

  Status mark(std::uint64_t first_byte, std::uint64_t count_bytes);
  Status write(std::uint64_t first_byte, std::uint64_t count_bytes, const void* source);

  // log: finds what changed since the last call and protects it again. Before save().
  Status collect_changes();
  bool is_tracked() const { return tracker_ != nullptr; }
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
  void note_unseen(bool unseen) { unseen_ = unseen; }
  // The application's own, or null.
  const std::byte* given_buffer() const { return owned_.is_there() ? nullptr : buffer_; }
  // Its memory goes (freed_buffers.hpp), or may go by realloc(). From then on there is nothing to
  // commit. Any thread. `how` is for good: "freed".
  void lose_buffer(const char* how);
  void move_buffer();
  void end_move_of_buffer(bool kept);
  // Code::wrong_state says what became of it.
  Status check_buffer_here() const;

  // Whether it can become an array of that shape.
  Status check_resizable(const ArrayShape& shape) const;
  // From the next version on it is as `entry` says, whose extent is its own, or a new one. Its
  // elements stay, in row-major order, as far as there is room; new ones are zero. `buffer`: where
  // the application's own lies now, with the contents; null: ours from now on. Not while the
  // version under way reads it. On an error all is as before.
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
  // Another one for the one that it had; no version is under way.
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
  VersionedArray(Device& device, ParallelWriter& writer, const ArrayEntry& entry,
                 const Geometry& geometry, const ArrayOptions& options);

  Status check_options(const ArrayOptions& options) const;
  Status allocate_buffers(const ArrayOptions& options);
  Status make_checked_copies();
  Status take_entry(const ArrayEntry& entry);
  Status begin_empty(const ArrayEntry& entry);
  Status check_buffer(std::byte* buffer, std::uint64_t size_bytes);
  Status take_device_buffer(Accelerator& accelerator, std::byte* buffer);
  Status resize_device_buffer(std::byte* given, const ArrayEntry& entry);
  Status named(const Status& status) const;
  Status watch();
  Status watch_other(std::byte* at, std::uint64_t size_bytes);
  void choose_finding(std::uint64_t size_bytes);
  void make_tables();
  Status fit();
  Status resize_buffer(std::byte* given, const ArrayEntry& entry, bool& other_contents);
  void take_size(const ArrayEntry& entry, bool other_contents);
  void keep_copy(const std::byte* from, std::uint64_t bytes, std::uint32_t copy);
  Result<std::uint64_t> save_copy();
  Result<std::uint64_t> save_twin();
  Result<std::uint64_t> save_log();
  bool unchanged() const;
  std::uint32_t copy_of_next() const;
  std::uint64_t checksum_of_next() const;
  void wake();
  Result<std::uint64_t> save_from_device();
  CopySums sums_of(std::uint32_t copy);
  Status save_pages(PageRun run, const std::byte* from);
  void sum_blocks_of(PageRun run);
  void find_differences();
  void store_table();
  void checksum_working_copy();
  std::byte* seen_address(std::uint32_t copy) const {
    return checked_ ? checked_->at(copy) : copy_address(copy);
  }
  std::byte* copy_address(std::uint32_t copy) const {
    return device_.base() + entry_.copy_offset(copy);
  }
  std::uint64_t blocks() const;
  // Of a page or a block, which may be the last one and shorter.
  std::uint64_t bytes_at(std::uint64_t begin, std::uint64_t most) const {
    return std::min(most, entry_.size_bytes - begin);
  }
  bool sums_pages() const { return entry_.shape.checksums && is_of_pages(entry_.checksum); }
  std::uint64_t named_copies() const;

  Device& device_;
  ParallelWriter& writer_;
  ArrayEntry entry_;
  std::uint64_t block_bytes_;
  std::uint64_t page_bytes_;           // what is copied together
  std::byte* buffer_ = nullptr;        // copy and log
  ArrayBuffer owned_;                  // what buffer_ is, unless the application gave one
  ArrayBuffer staging_;                // staged
  const std::byte* source_ = nullptr;  // what save() takes: buffer_ or staging_
  Accelerators* const accelerators_;
  std::unique_ptr<DeviceBuffer> device_buffer_;     // what buffer_ is, if it is a GPU's
  std::optional<std::uint64_t> saved_from_device_;  // by collect_changes()
  std::vector<std::uint64_t> no_sums_;
  const bool marks_;
  const bool asked_to_compare_;
  const bool resizable_;
  const TrackerKind tracker_kind_;
  bool tracked_ = false;      // log: by a page tracker, so that the buffer has pages of its own
  bool compare_ = false;      // log: neither that nor marks
  bool compare_now_ = false;  // as compare_, in the next save()
  bool unseen_ = true;        // the tracker may miss stores of the next version
  bool keep_contents_ = false;
  std::uint64_t reach_bytes_ = 0;  // the application's buffer could be so long, where it is
  TwinWriter* twin_writer_ = nullptr;
  bool started_ = false;
  bool committed_ = false;
  std::uint32_t working_copy_ = 0;
  std::uint32_t saved_copy_ = no_copy;  // of the version under way, after move_on()
  std::vector<std::uint8_t> named_;     // by slot: a copy or no_copy
  std::uint64_t seen_ = 0;
  bool idle_ = false;
  Woken* woken_ = nullptr;
  std::uint64_t number_ = 0;  // in woken_
  std::uint64_t part_of_version_ = 0;
  std::size_t place_ = 0;
  enum class Resized : std::uint8_t { no, in_place, moved };
  Resized resized_ = Resized::no;                      // since it took part in a version
  std::vector<std::vector<std::uint64_t>> tables_;     // checksums of each copy's blocks
  std::vector<std::vector<std::uint64_t>> page_sums_;  // and pages', if they are of pages
  PageSet changed_{0, 1};                              // log: since the committed version
  PageSet marked_{0, 1};                               // log: by mark(), not yet in changed_
  std::vector<PageSet> stale_;                         // log: in which a copy is out of date
  std::unique_ptr<PageTracker> tracker_;
  std::unique_ptr<CheckedCopies> checked_;  // twin, with PERDURE_CHECK: where the program stores
  std::atomic<const char*> lost_{nullptr};  // how the application's buffer went
  std::uint64_t streamed_begin_ = 0;  // twin: [begin, end) of the working copy went past the cache
  std::uint64_t streamed_end_ = 0;
};

}  // namespace perdure
