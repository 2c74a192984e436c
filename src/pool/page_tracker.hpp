// SPDX-License-Identifier: BSD-3-Clause
//
// Page tracker: finds the pages of a buffer that were stored into since it last looked.
//
// There are two. WrittenTracker (written_tracker.hpp) asks the kernel, from Linux 6.7 on: it sees
// what read(), MPI's single-copy receives and threads with blocked signals store. FaultTracker
// (fault_tracker.hpp) catches faults, where the kernel is older or a container forbids
// userfaultfd(). PERDURE_TRACKER=kernel or =faults asks for one of them.
//
// Neither sees stores that do not go through this mapping of the memory: of other processes, of
// other mappings, and of devices and of the kernel through pages that were pinned before
// (unseen_stores.hpp).
//
// Buffers of up to 16 KiB have none, and are compared: is_worth_it().
//
// The first store to a page costs a fault, which takes longer than to copy the page twice. So a
// chunk of 2 MiB is left writable, and counts as changed, where it is foreseen that nearly all of
// its pages change: they did in the last three versions, or in every second one of the last four
// (the two arrays of a loop that overwrites them in turn). It is watched again in the versions in
// between, and in one after 60 that were foreseen.
//
// The buffer must be page-aligned (can_watch()) and have its last page to itself, and lie in no
// other tracker's. It stays mapped until the tracker is gone, or stop() was called. Threads: stores
// may come from any; stop() and expose() from any; the others from the thread of the pool.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/status.hpp"
#include "pmem/page_ranges.hpp"
#include "pool/page_set.hpp"

namespace perdure {

enum class TrackerKind : std::uint8_t { chosen, kernel, faults };

class PageTracker {
 public:
  // False for a few pages: comparing them costs less than asking the kernel, and finds all stores.
  // A tracker that was asked for, here or by the environment, is always.
  static bool is_worth_it(std::size_t size_bytes, TrackerKind kind);

  // It begins at a page. Else its pages are others' too, and it is to be compared.
  static bool can_watch(const std::byte* base);

  // kernel or faults: what create() makes in this process for TrackerKind::chosen.
  static Result<TrackerKind> chosen_kind();

  static Result<std::unique_ptr<PageTracker>> create(std::byte* base, std::size_t size_bytes,
                                                     TrackerKind kind = TrackerKind::chosen);
  virtual ~PageTracker();
  PageTracker(const PageTracker&) = delete;
  PageTracker& operator=(const PageTracker&) = delete;

  // Watches the whole buffer; nothing counts as changed from here on.
  Status watch();
  // Adds what was stored into since watch() or the last collect(), and watches it again.
  Status collect(PageSet& changed);
  // Nothing is watched any more, in memory that is still `mapped`, or went.
  void stop(bool mapped);
  // The memory may move: it is as any other, and all of it counts as changed.
  virtual void expose() {}

 protected:
  PageTracker(std::byte* base, std::size_t size_bytes);

  std::byte* base() const { return base_; }
  std::size_t size_bytes() const { return size_bytes_; }  // whole pages

  // Of whole chunks. From here on stores are noted / are not, and cost nothing.
  virtual void unwatch(bool mapped) = 0;
  virtual Status protect(ByteRange range) = 0;
  virtual Status release(ByteRange range) = 0;
  // Adds what was stored into since the last protect() or take(), and protects it again.
  virtual Status take(ByteRange range, PageSet& changed) = 0;

 private:
  struct Chunk {
    std::uint8_t full = 0;      // of the last versions, a bit each: nearly all of it changed
    std::uint8_t foreseen = 0;  // so many of them were foreseen since it was looked at
    bool left = false;          // writable until the next collect()
  };
  ByteRange range_of(std::size_t first, std::size_t end) const;
  void note(Chunk& chunk, ByteRange range, const PageSet& changed) const;
  Status choose(Chunk& chunk, ByteRange range);

  std::byte* base_;
  std::size_t size_bytes_;
  std::vector<Chunk> chunks_;
  std::atomic<bool> stopped_{false};
};

}  // namespace perdure
