// Versioned array: one named array of a pool, its two halves on the device, and the way its mode
// brings the application's contents into the half that the next version will name.
//
//   copy   the application has one buffer in DRAM; save() copies it to the working half
//   twin   the application writes the working half itself; save() flushes it
//   log    as copy, but save() copies only blocks that the working half lacks: those changed since
//          the last version, and those changed in the version before (it went to the other half)
//
// Invariants
//   A1  The half that the newest committed version names is never stored to.
//   A2  After save() and a fence the working half is the array's contents, and the working half's
//       checksum table in `tables_` is that of those contents.
//   A3  log: a block in which the working half differs from the buffer is marked in changed_ or in
//       stale_[working half].
//
// Threads: one at a time, but save() may run beside readers of the buffer.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "object/catalogue.hpp"
#include "object/page_tracker.hpp"
#include "pmem/device.hpp"
#include "pmem/parallel.hpp"

namespace perdure {

struct ArrayOptions {
  void* buffer = nullptr;  // copy and log: the application's; nullptr: ours
  bool marks = false;      // log: changed blocks are named by mark()
};

// Checks the half that `entry` names against its checksums, block by block, and copies it to
// `copy_to` unless that is null; without checksums it only copies. `table` (may be null) receives
// the checksums. Code::damaged names the byte range.
Status verify_and_copy(const Device& device, const ArrayEntry& entry, std::uint64_t block_bytes,
                       std::byte* copy_to, std::vector<std::uint64_t>* table);

class VersionedArray {
 public:
  // `entry` says where the halves are; the device is large enough.
  static Result<std::unique_ptr<VersionedArray>> create(Device& device, ParallelWriter& writer,
                                                        const ArrayEntry& entry,
                                                        std::uint64_t block_bytes,
                                                        const ArrayOptions& options);
  ~VersionedArray();
  VersionedArray(const VersionedArray&) = delete;
  VersionedArray& operator=(const VersionedArray&) = delete;

  const std::string& name() const { return entry_.name; }
  const ArrayEntry& entry() const { return entry_; }  // names the committed half
  std::uint64_t size_bytes() const { return entry_.size_bytes; }
  ArrayMode mode() const { return entry_.shape.mode; }

  // A new array: buffer and halves are zero.
  Status start_empty();
  // An array of the pool: takes the entry of the restored version, verifies the half against its
  // checksums (if it has them) and fills the buffer. Code::damaged names the byte range.
  Status start_restored(const ArrayEntry& entry);

  std::byte* working();
  const std::byte* consistent() const;

  Status mark(std::uint64_t first_byte, std::uint64_t count_bytes);
  Status write(std::uint64_t first_byte, std::uint64_t count_bytes, const void* source);

  // log: finds what changed since the last call and protects it again. Before save().
  Status collect_changes();
  // Brings the working half up to date (A2) but for the caller's fence. Returns bytes written.
  Result<std::uint64_t> save();
  // Makes `entry`, this array's in the next version, name the working half. After save().
  void update_entry(ArrayEntry& entry) const;
  // The version was committed: the halves change roles.
  void commit();

 private:
  VersionedArray(Device& device, ParallelWriter& writer, const ArrayEntry& entry,
                 std::uint64_t block_bytes, const ArrayOptions& options);

  Status allocate_buffer();
  Result<std::uint64_t> save_copy();
  Result<std::uint64_t> save_twin();
  Result<std::uint64_t> save_log();
  Status save_blocks(std::uint64_t first_block, std::uint64_t blocks);
  void store_table();
  void checksum_working_half();
  std::byte* half_address(std::uint32_t half) const;
  std::uint32_t working_half() const { return 1 - entry_.half; }
  std::uint64_t blocks() const;

  Device& device_;
  ParallelWriter& writer_;
  ArrayEntry entry_;
  std::uint64_t block_bytes_;
  std::byte* buffer_ = nullptr;  // copy and log
  bool owns_buffer_ = false;
  bool marks_ = false;
  std::array<std::vector<std::uint64_t>, 2> tables_;  // checksums of each half's blocks
  std::vector<std::uint8_t> changed_;                 // log: since the last commit, by block
  std::array<std::vector<std::uint8_t>, 2> stale_;    // log: blocks in which a half is behind
  std::unique_ptr<PageTracker> tracker_;
  std::uint64_t streamed_begin_ = 0;  // twin: [begin, end) of the working half went past the cache
  std::uint64_t streamed_end_ = 0;
};

}  // namespace perdure
