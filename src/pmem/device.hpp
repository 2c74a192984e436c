// SPDX-License-Identifier: BSD-3-Clause
//
// Device: a mapped range of persistent bytes, and the few verbs that make stores durable.
//
// Everything above pmem reaches persistent memory through this seam, so that a file on DAX, a
// tmpfs file, an ordinary file, an emulated memory and the crash double of the tests are one thing.
//
// Rules
//   pmem.D1  A byte is durable once it was flushed after its last store and a fence returned after
//       the flush. copy() counts as store and flush; store() and plain stores through base() do
//       not. Non-temporal stores through base() do once stored_past_cache() has announced them.
//   pmem.D2  An aligned 8-byte store reaches the device whole or not at all; nothing larger does.
//   pmem.D3  A store that was not flushed may become durable at any time (cache eviction,
//       write-back).
//   pmem.D4  A fence orders the flushes and copies of the calling thread only; a thread that helps
//       with copying fences before it reports that it is done.
//   pmem.D5  base() never changes while the device is open; resize() only grows, and allocates: no
//       store into [0, size_bytes()) can fail later for want of space. A device with holes (a
//       shared file, file_device.hpp) must be given space by allocate() first.
//
// Threads: store, copy, flush, fence and allocate may be called from several threads on disjoint
// ranges; everything else from one thread. Failure: only resize(), allocate(), discard(), fence()
// and check() can fail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>

#include "base/data_checksum.hpp"
#include "base/status.hpp"
#include "pmem/page_ranges.hpp"

namespace perdure {

// What survives what. tmpfs keeps bytes when a process dies, not when the node loses power.
enum class PersistenceClass : std::uint8_t {
  process_crash,  // survives the death of processes only
  power_failure,  // survives power loss and kernel crashes too
};

struct DeviceDescription {
  std::string name;              // for people: "tmpfs file /dev/shm/p/rank-00000"
  PersistenceClass persistence;  // of the medium that is mapped
  std::size_t granule_bytes;     // what one flush writes: 64 for a cache line, 4096 for a page
};

// The file whose bytes these are, for processes of this node that map it too (shared_view.hpp).
struct DeviceFile {
  std::string path;       // empty: there is none
  bool map_sync = false;  // DAX: map it with MAP_SYNC
};

// Counted since the device was opened; readable at any time.
struct DeviceCounters {
  std::uint64_t stored_bytes = 0;   // by store() and store_word()
  std::uint64_t copied_bytes = 0;   // by copy(), without the cache
  std::uint64_t flushed_bytes = 0;  // by flush(), rounded to granules
  std::uint64_t flush_calls = 0;
  std::uint64_t fence_calls = 0;
  std::uint64_t model_ns = 0;  // time that an emulated memory would have added (delay_device)
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;  // unmaps; what was not fenced is in the hands of pmem.D3

  virtual DeviceDescription describe() const = 0;
  virtual DeviceFile file() const { return {}; }
  // The file has this path from now on. While no other thread uses the device.
  virtual void renamed(const std::string& path) { (void)path; }
  virtual std::byte* base() const = 0;
  virtual std::uint64_t size_bytes() const = 0;
  virtual DeviceCounters counters() const = 0;

  // How many bytes have space, and the first one from `offset` on that does, or size_bytes(): what
  // has none is zeros, and a file of a few bytes may have 2^60 of them.
  virtual std::uint64_t allocated_bytes() const { return size_bytes(); }
  virtual std::uint64_t next_allocated(std::uint64_t offset) const { return offset; }
  // What allocate() could give now, by what the file system says; no limit where it says nothing.
  virtual std::uint64_t free_bytes() const { return std::numeric_limits<std::uint64_t>::max(); }

  // Grows to at least `size_bytes` and allocates it all; on failure the old size stays.
  virtual Status resize(std::uint64_t size_bytes) = 0;

  // What was left untouched (FileDeviceOptions::copied_first) is touched, maybe in the background.
  virtual void touch_pages() {}

  // Gives [offset, offset + count) space, where it has none; what had none reads as zeros.
  // Code::no_space leaves all as it was.
  virtual Status allocate(std::uint64_t offset, std::size_t count);
  // [offset, offset + count) reads as zeros, durably, and its whole pages need no space any more.
  virtual Status discard(std::uint64_t offset, std::size_t count);

  // Ordinary store of `count` bytes at `offset`: durable after flush() and fence().
  virtual void store(std::uint64_t offset, const void* source, std::size_t count) = 0;

  // One aligned 8-byte store (pmem.D2): durable after flush() and fence().
  virtual void store_word(std::uint64_t offset, std::uint64_t word) = 0;

  // Store past the cache where the processor allows it: durable after fence(), no flush() needed.
  virtual void copy(std::uint64_t offset, const void* source, std::size_t count) = 0;

  // The same, and the checksum of the bytes, which are read from memory once.
  virtual std::uint64_t copy_and_sum(std::uint64_t offset, const void* source, std::size_t count,
                                     DataChecksum kind);

  // copy() of bytes of a file, without a way through this process. False: it can't be done so, and
  // what is at `offset` is not known.
  virtual bool copy_from(std::uint64_t offset, int fd, std::uint64_t from, std::size_t count) {
    (void)offset, (void)fd, (void)from, (void)count;
    return false;
  }

  // This thread has stored to all of [offset, offset + count), whole granules, through base() and
  // by non-temporal stores: durable after fence(), no flush() needed.
  virtual void stored_past_cache(std::uint64_t offset, std::size_t count) { flush(offset, count); }

  // Whether other devices than the processor may store through base(). The kernel would not see
  // that pages of a file's cache have changed.
  virtual bool takes_dma() const { return true; }
  // One has stored to [offset, offset + count), and has said that it is done: durable after
  // fence().
  virtual void stored_by_dma(std::uint64_t offset, std::size_t count) { flush(offset, count); }

  // Starts writing back every granule that [offset, offset + count) touches.
  virtual void flush(std::uint64_t offset, std::size_t count) = 0;
  // Of each range, for many small ones: what a device counts would wait for each flush before.
  virtual void flush_each(std::span<const ByteRange> ranges) {
    for (const ByteRange& range : ranges) flush(range.begin, range.end - range.begin);
  }

  // Returns when all flushes and copies of this thread before it are durable.
  virtual Status fence() = 0;

  // Whether what is durable can be found again: Code::io_error if the file was removed, or cut,
  // while it is open.
  virtual Status check() const { return Status::success(); }
};

}  // namespace perdure
