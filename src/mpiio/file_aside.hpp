// SPDX-License-Identifier: BSD-3-Clause
//
// File aside: a file of one node that has no part yet. A part has a price, some hundred system
// calls and a megabyte of memory that is touched, which many files never bring in. So a file begins
// aside: what is read and written is the file itself, through the kernel, until a process has made
// as many accesses as would have paid for a part. Then that process makes it, and all that have the
// file open on the node go on with it. As with skis that are rented or bought, that costs at most
// twice what the better choice from the first byte on would have.
//
// What pays: accesses, as each system call that is saved does. Bytes pay only where reading them
// again, or writing them, is dear: a part's memory is not faster than a tmpfs, nor than the
// kernel's own cache of a disk, and what is written only once is written no less. So they count
// where the file system is neither (FileMedium::other): an access then counts once more for each
// `bytes_of_access` bytes. A large read by itself counts as less than one access, as a part brings
// it little (`small_read_bytes` of evictor.hpp): a file that is read in pages of 4 KiB has cost ten
// times what a part does when it gets one.
//
// Which files: cache_options.hpp's `from` is not 0; neither durable writes (ack) nor a sync that
// does not reach the file (sync=nvm), a commit with a pool, or a fetch at open were asked for; the
// directory has no %n; the process may read the file; all ranks see one table (aside_table.hpp),
// where each has entered the file, of which there was no part. What needs a part makes it: atomic
// mode, durable writes, another handle in a process that has the file open.
//
// Threads: any. Failure: a part that can't be made when that is only a choice is put off; where it
// is needed, or others have one that can't be joined, that is the failure.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>

#include "cache/aside_table.hpp"
#include "cache/part_directory.hpp"
#include "mpiio/access_name.hpp"
#include "mpiio/cache_options.hpp"

namespace perdure {

// Where the table of files aside is that these options lead to; nothing if PERDURE_NODE_ID is not a
// number, which map_nodes() reports.
std::optional<std::string> aside_directory(const CacheOptions& options);

class FileAside {
 public:
  // What a process brings to an opening.
  struct Claim {
    AsideEntry entry;
    PartRequest request;  // of the part, when it is made
    std::uint64_t from;   // accesses (cache_options.hpp)
    EvictingTerms evicting;
  };
  explicit FileAside(Claim claim) : claim_(std::move(claim)) {}

  static constexpr std::uint64_t bytes_of_access = 256;

  // An access, before it is made. Whether it, with those before, has paid for a part.
  bool count(const BackingFile& file, Direction direction, std::uint64_t bytes);
  // A part could not be made, or somebody is in the middle of a long access: unless it is needed,
  // it is not tried again before there were twice as many accesses.
  void put_off();

  AsideEntry& entry() { return claim_.entry; }
  const EvictingTerms& evicting() const { return claim_.evicting; }
  const PartRequest& request() const { return claim_.request; }
  // Between threads of this process that end the standing aside.
  std::mutex& mutex() { return mutex_; }

  // Of the shared pointer that the handle has which was opened with entry `number` on its first
  // rank: what tells it from those in parts.
  static int pointer_slot(std::uint32_t number) {
    return pointer_slots_begin + static_cast<int>(number);
  }
  static bool is_pointer_slot(int slot) { return slot >= pointer_slots_begin; }
  std::atomic_ref<std::uint64_t> pointer(int slot) const;

 private:
  FileMedium medium(const BackingFile& file);
  static constexpr std::uint64_t parts_of_access = 256;
  static constexpr int pointer_slots_begin = 1 << 16;

  Claim claim_;
  std::mutex mutex_;
  std::atomic<std::uint64_t> accesses_{0};  // in parts of one, `parts_of_access`
  std::atomic<std::uint64_t> bytes_{0};     // in accesses that they pay for
  std::atomic<int> medium_{-1};             // FileMedium, once it is known
  std::atomic<std::uint64_t> from_{claim_.from};
};

}  // namespace perdure
