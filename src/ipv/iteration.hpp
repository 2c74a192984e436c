// SPDX-License-Identifier: BSD-3-Clause
//
// Iteration: an object from its first store after a persistence point to the next one. Where its
// two copies are, which bytes are current in which (ipv.P2 of stream_object.cpp), and how many
// nests there were. old is the committed copy, new the working one.
//
// Threads: under the object's lock. No function fences; those that store return how many bytes.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "ipv/line_set.hpp"
#include "pmem/device.hpp"

namespace perdure {

class Iteration {
 public:
  Iteration(Device& device, std::uint64_t object_bytes) : device_(device), bytes_(object_bytes) {}

  // The caller has waited (ipv.P1). old and new are equal except in the lines of `lacking`, which
  // stays as it is until the next begin.
  void begin(std::uint64_t old_offset, std::uint64_t new_offset, const LineSet& lacking);
  // Before there is a version: all of the object is in new.
  void begin_whole(std::uint64_t new_offset, const LineSet& lacking);
  // Also the next one's guess how many nests there will be; `plain`: stores that no row announced
  // came after them.
  void end(bool plain);

  std::uint64_t new_offset() const { return new_offset_; }
  const std::byte* old_contents() const { return device_.base() + old_offset_; }
  const std::byte* new_contents() const { return device_.base() + new_offset_; }

  // From old to new in a nest. Whole lines go past the cache where there are many. The rest goes
  // through it, and its lines are added to `dirty`: rows begin and end there, and a line that was
  // flushed at once would be fetched again for the next of them.
  struct Copied {
    std::uint64_t bytes = 0;
    std::uint64_t past_cache_bytes = 0;
  };
  Copied copy_old(ByteRange range, LineSet& dirty);

  // A box is about to be overwritten, all of whose rows lie in `box`. True if nothing of the object
  // is current in new: what is loaded comes from old, and what lies between rows is to be copied.
  bool place(ByteRange box);

  // From here on all of the object is current in new. In a nest, as copy_old(); before stores that
  // no row announces, through the cache: the program is about to store there, and all will be
  // flushed.
  Copied complete_in_nest(LineSet& dirty);
  std::uint64_t complete_in_cache();
  // The same, without copying: somebody else wrote all of new.
  void note_complete() { (void)take_missing(); }

  // What later nests store to is saved after the last of them only, if this iteration goes as the
  // one before went.
  bool nest_is_last() const { return nests_ + 1 >= usual_nests_ && !usually_plain_; }
  // One more nest ended; false if there were so many that to seal it costs more than it saves.
  bool seal_nest();

 private:
  void copy_through_cache(ByteRange run) const;
  std::array<ByteRange, 2> take_missing();

  Device& device_;
  std::uint64_t bytes_;
  std::uint64_t old_offset_ = 0;
  std::uint64_t new_offset_ = 0;
  const LineSet* lacking_ = nullptr;
  ByteRange current_;           // in new; the box that is overwritten, or all
  unsigned nests_ = 0;          // that were sealed
  unsigned usual_nests_ = 0;    // in the iteration before
  bool usually_plain_ = false;  // it ended with stores that no row announced
};

}  // namespace perdure
