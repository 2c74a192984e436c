// SPDX-License-Identifier: BSD-3-Clause
//
// Copy object (tier COPY): the program's memory stays as it is, wherever it lies, and nothing
// stands between the program and it. A page tracker (page_tracker.hpp) says which pages changed; at
// the persistence point the pages that the working copy lacks are copied there, past the cache.
//
// Why that is enough, and why nothing more is done:
//   - The kernel notes stores without faults that anybody sees (Linux 6.7), from any thread, and
//     its own, so that no view, no remapping, no signal handler and no rule about readers is
//     needed. Pages that always change are left alone by the tracker, so they cost no fault either.
//   - The copy is complete when the persistence point returns. So the program may store at once,
//     and no store waits. What takes time on the medium, the fence, comes one persistence point
//     later (lag 1). To copy beside the program would need stores to be stopped meanwhile.
//
// Invariants
//   ipv.C1  A page in which copy c differs from the memory is in stale_[c], or the tracker will
//       say it, or all counts as changed. So the working copy is the memory when stale_ of it was
//       copied.
//   ipv.C2  All of the object counts as changed where stores may go unseen: without a tracker,
//       while it is pinned, and where the kernel or a device stores through pinned pages. The
//       pages at its ends that it shares with other memory are not tracked, and always count.
//   ipv.C3  After the program freed the memory, kept_ is the contents, until a committed copy is.
//   ipv.C4  When the object got another size, all that it did not have before at this place is
//       stale in each copy: the bytes that are new, all of it in another place, and all of it where
//       its copies lie in another extent. What was stored before, and the tracker of then had
//       noted, counts as changed.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "ipv/object.hpp"
#include "pool/page_set.hpp"
#include "pool/page_tracker.hpp"

namespace perdure {

class CopyObject final : public InPlaceObject {
 public:
  // `whole_pages`: nothing else lies in the last page. `why`: what was asked for is not possible.
  CopyObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
             std::uint64_t bytes, Tier asked, bool whole_pages, std::string why);

  Status start() override;
  void leave() override;
  Status end(Going how) override;
  Status resize(const ObjectMemory& to, const ResizeInPool& in_pool) override;
  void touch(ByteRange range) override;
  Status pin() override;
  Status unpin() override;
  Status hand_over() override;
  const std::byte* contents() const override;
  bool changed() const override { return in_version_; }
  Result<std::uint64_t> save_contents() override;
  void end_version(CommitOutcome outcome) override;
  Tier tier() const override { return PERDURE_IPV_COPY; }
  perdure_ipv_object_status status() const override;

 private:
  // What differs from the memory, by page.
  struct Stale {
    PageSet changed;               // since the contents were handed over
    std::vector<PageSet> of_copy;  // that, and what the copy lacks
  };
  void watch();
  void stop_watching();
  Stale stale_at(const ObjectMemory& to, bool stays) const;
  Status find_changes();
  void note_all_changed();
  ByteRange bytes_of(PageRun run) const;

  std::mutex mutex_;    // end() against the rest
  std::uint64_t skew_;  // of the address in its page, with which the sets begin
  ByteRange own_;       // of these pages, those that are the object's alone
  std::unique_ptr<PageTracker> tracker_;
  PageSet changed_;             // since the contents were handed over
  std::vector<PageSet> stale_;  // by copy
  bool started_ = false;
  bool may_be_watched_ = true;  // it was not tried
  bool has_new_place_ = false;  // since the contents were handed over
  bool must_save_ = false;      // even if nothing changed
  bool in_version_ = false;
  std::uint64_t pins_ = 0;
  std::unique_ptr<std::byte[]> kept_;
};

}  // namespace perdure
