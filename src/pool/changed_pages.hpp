// SPDX-License-Identifier: BSD-3-Clause
//
// Changed pages: what of an array in log mode its copies lack, and how that is found. A page is
// what is copied together (unit_bytes() of checksum_tables.hpp).
//
// The program names what it stores to (marks), or a tracker finds it (page_tracker.hpp), or the
// contents are compared with the committed copy.
//
// Invariant
//   pool.A3  A page in which copy c differs from the contents, or whose checksum in c's table is
//       not known, is in marked_, in changed_ or in stale_[c], or the tracker will say it, or the
//       next lacking() will find it by comparing. So all others are in copy c as they are in the
//       contents, and a block's checksum is made of theirs and of those that are copied.
//
// Threads: one at a time; stop() and expose() may come from any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.hpp"
#include "pool/page_set.hpp"
#include "pool/page_tracker.hpp"

namespace perdure {

class ChangedPages {
 public:
  enum class Way : std::uint8_t { marks, tracker, comparison };
  struct Asked {
    bool marks = false;
    bool compare = false;
    TrackerKind tracker = TrackerKind::chosen;
  };

  ChangedPages(const Asked& asked, std::uint64_t size_bytes) : asked_(asked) {
    choose_way(size_bytes);
  }

  Way way() const { return way_; }
  bool by_marks() const { return way_ == Way::marks; }
  // Then the contents have pages of their own.
  bool by_tracker() const { return way_ == Way::tracker; }
  bool is_tracked() const { return tracker_ != nullptr; }
  // By marks, or by comparing.
  bool was_told_how() const { return asked_.marks || asked_.compare; }
  // For contents of that size, wherever they will be.
  void choose_way(std::uint64_t size_bytes);
  void set_way(Way way) { way_ = way; }

  // Copies that none is known of, of contents of that size.
  void begin(std::uint64_t size_bytes, std::uint64_t page_bytes, std::uint32_t copies);
  // Of the contents that there were, what fits is as it was; or they are others, of which no copy
  // is known to have any.
  void resize(std::uint64_t from_bytes, std::uint64_t size_bytes, bool others);
  // No copy, or none but this one, has the contents.
  void add_all();
  void restore(std::uint32_t from_copy);

  // The contents are there now: the tracker is that of this memory.
  Status follow(std::byte* contents, std::uint64_t size_bytes);
  // They are nowhere: their memory goes.
  void leave() { tracker_.reset(); }
  // They stay there after all, with `way`, and all of them counts as changed.
  void follow_again(std::byte* contents, std::uint64_t size_bytes, Way way);
  // Nothing that was stored until now is a change.
  Status watch();
  // Nothing is watched any more, in memory that is still `mapped`, or went.
  void stop(bool mapped);
  // The memory may move: it is as any other, and all of it counts as changed.
  void expose();

  void mark(ByteRange bytes);
  // Finds what changed since the last call, and watches it again.
  Status collect();
  // Before the contents are followed anew, or in another way: what is known of stores so far. Those
  // that nobody has followed, or that may have gone unseen, are found by the next lacking().
  Status end_following();
  // Whether stores after the last collect() may go unseen: then the next version compares.
  void note_unseen(bool unseen) { unseen_ = unseen; }

  // What `copy` lacks of the contents, after collect(). It stays so until commit(): if the version
  // is given up, none of it need be durable. `committed`: the head's copy; null: there is none.
  const PageSet& lacking(std::uint32_t copy, std::span<const std::byte> contents,
                         const std::byte* committed);
  // A version names `copy`; if it `is_of_now`, that has the contents, which got no other size since
  // it was saved.
  void commit(std::uint32_t copy, bool is_of_now);

 private:
  void find_differences(std::span<const std::byte> contents, const std::byte* committed);

  const Asked asked_;
  Way way_ = Way::marks;
  bool compare_now_ = false;  // in the next lacking(), whichever the way is
  bool unseen_ = true;        // the tracker may miss stores of the next version
  std::uint64_t page_bytes_ = 1;
  PageSet changed_{0, 1};       // since the committed version
  PageSet marked_{0, 1};        // by mark(), not yet in changed_
  std::vector<PageSet> stale_;  // in which a copy is out of date
  std::unique_ptr<PageTracker> tracker_;
};

}  // namespace perdure
