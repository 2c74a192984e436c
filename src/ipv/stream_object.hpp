// SPDX-License-Identifier: BSD-3-Clause
//
// Stream object (tier STREAM): an object that lives in the pool. Its address shows a view of one of
// its array's copies, and they swap roles, so that boxes that a loop announces need no copying. The
// invariants, and why they are enough, are at the top of stream_object.cpp.
//
// Threads: the hooks, hand_over() and what is below it are called by the thread that
// started the object, flush_early() by the flushing thread; plain() and fault() by any, at the same
// time. Failure: if the kernel refuses to move a view the process ends with a sentence, as there is
// nowhere to go on storing.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/this_thread.hpp"
#include "ipv/address_views.hpp"
#include "ipv/box_rows.hpp"
#include "ipv/copy_contents.hpp"
#include "ipv/fault_lock.hpp"
#include "ipv/iteration.hpp"
#include "ipv/line_set.hpp"
#include "ipv/object.hpp"
#include "ipv/shown_check.hpp"

namespace perdure {

class StreamObject final : public InPlaceObject {
 public:
  // `whole_pages`: nothing else lies in the pages of [address, address + bytes).
  StreamObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
               std::uint64_t bytes, bool whole_pages);

  Status start() override;
  void leave() override;
  Status end(Going how) override;
  Status resize(const ObjectMemory& to, const ResizeInPool& in_pool) override;

  bool shows(std::uintptr_t address) const override {
    return reaches_into(address / view_page_bytes * view_page_bytes, address + 1);
  }
  bool takes_boxes() const override { return own_thread(); }
  perdure_ipv_answer box_begin(const perdure_ipv_box& box) override;
  bool box_end(const perdure_ipv_box& box, bool past_cache) override;
  void plain() override;
  void touch(ByteRange /*range*/) override { plain(); }
  bool fault(std::uintptr_t address) override;
  // Its pages move.
  Status pin() override;
  Status unpin() override;

  bool finish_stores() override;
  bool queue_early_flush() override;
  ByteRange take_for_flush(ByteRange range) override;
  Status flush_early() override;

  Status hand_over() override;
  bool changed() const override { return in_version_; }
  Result<std::uint64_t> save_contents() override;
  void end_version(CommitOutcome outcome) override;
  const std::byte* contents() const override;
  void take_plain_copy(const std::byte* plain) override;
  Tier tier() const override { return PERDURE_IPV_STREAM; }

 private:
  enum class Phase : std::uint8_t {
    off,      // not started, or left
    clean,    // nothing was stored since the contents were handed over, or restored
    writing,  // stores are possible and not seen
    sealed,   // something was stored; the contents are complete, and a store would be seen
    lost,     // as clean, but no version can be made any more
  };
  // What the version under way takes of the object, apart from what the next iteration does.
  struct Taken {
    std::uint64_t offset = 0;  // of the copy that the version will name
    LineSet dirty;             // of that copy
    std::uint64_t flushed_bytes = 0;
  };
  // Lines of boxes past the cache, of which the device will hear.
  struct Untold {
    std::vector<ByteRange> lines;
    std::uint64_t bytes = 0;
  };

  // Places and contents (stream_object.cpp).
  Status may_be_placed() const;
  Status make_places();
  void take_contents();
  void show(unsigned place, ViewAccess access);
  void show_idle();
  unsigned home_place() const;  // of the contents, while they are stored to
  void take_rest(const std::byte* from, std::uint32_t copy);
  void note_all_changed();
  void begin_iteration();
  void enter_writing();
  void lock_for_stores();
  void plain_locked();

  // Boxes (object_rows.cpp).
  bool own_thread() const { return this_thread() == thread_; }
  BoxRows rows_of(const perdure_ipv_box& box, BoxRows::Joins joins = BoxRows::Joins::yes) const;
  bool takes_box(const perdure_ipv_box& box, const BoxRows& rows) const;
  void enter_nest();
  void count_copied(const Iteration::Copied& copied);
  void complete_for_stores();
  void compare_shown();
  ptrdiff_t place_box(const BoxRows& rows);
  bool worth_past_cache(std::uint64_t row_bytes) const;
  void note_past_cache(ByteRange lines);
  void tell_device();
  void complete_in_nest();
  bool seal();
  void stop_early_flush() noexcept;

  // Commits (stream_commit.cpp).
  void seal_for_version();
  void take();
  Result<std::uint64_t> flush(std::uint64_t offset, const LineSet& dirty) const;
  void take_back();

  const bool whole_pages_;
  std::unique_ptr<AddressViews> views_;
  std::vector<unsigned> places_;  // by copy
  std::uintptr_t thread_ = 0;     // that makes the calls

  mutable FaultLock lock_;  // what is below
  std::atomic<Phase> phase_{Phase::off};
  Iteration iteration_;
  CopyContents contents_;
  LineSet changed_;          // since the version before
  LineSet dirty_;            // of the working copy, stored to and not flushed
  bool in_version_ = false;  // the version under way holds it as it was handed over
  Taken taken_;
  bool all_changed_ = false;
  bool in_nest_ = false;  // a box was announced, and box_end() is to come
  Untold untold_;
  std::optional<ShownCheck> check_;      // verify=on
  std::atomic<std::uint32_t> early_{0};  // flush_early(): 0 no, 1 queued, 2 runs
};

}  // namespace perdure
