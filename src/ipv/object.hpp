// SPDX-License-Identifier: BSD-3-Clause
//
// Object: one array of a program that gets a version at every persistence point, at the address
// where it is. The invariants, and why they are enough, are at the top of object.cpp.
//
// Threads: the row hooks, hand_over() and what is below it are called by the thread that
// started the object, but save() perhaps by the flushing thread, and flush_early() by that one
// only; plain() and fault() by any, at the same time. Failure: if the kernel refuses to move
// a view the process ends with a sentence, as there is nowhere to go on storing.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.hpp"
#include "ipv/address_views.hpp"
#include "ipv/box_rows.hpp"
#include "ipv/fault_lock.hpp"
#include "ipv/iteration.hpp"
#include "ipv/line_set.hpp"
#include "ipv/way_choice.hpp"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"
#include "pmem/device.hpp"
#include "pmem/parallel.hpp"
#include "pool/commit.hpp"
#include "pool/twin_writer.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

// Which objects must not be stored to for the moment.
enum class Hold : std::uint32_t {
  none,
  memory,  // those in COPY: a thread copies their memory
  all,     // the program is at a persistence point
};

// What the objects of a set share.
struct ObjectSurroundings {
  Device& device;
  ParallelWriter& writer;  // for the flushing thread; and for the program's, when that one rests
  bool guard = true;
  bool move_views = true;  // false: as on an old kernel
  bool lags = false;       // a version is finished one persistence point later (P1)
  std::atomic<Hold> hold{Hold::none};
  std::atomic<std::uintptr_t> committing{0};  // this_thread() of the one at a persistence point
  void wait_while(Hold held) const noexcept;  // also in a fault handler
  void set_hold(Hold next) noexcept;
};

class InPlaceObject final : public TwinWriter {
 public:
  // `whole_pages`: nothing else lies in the pages of [address, address + bytes).
  InPlaceObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
                std::uint64_t bytes, Tier asked, bool whole_pages);
  ~InPlaceObject() override;

  const std::string& name() const { return name_; }
  std::byte* address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  bool holds(std::uintptr_t address) const { return !ended_ && address - first() < bytes_; }
  bool overlaps(std::uintptr_t begin, std::uintptr_t end) const {
    return begin < first() + bytes_ && first() < end;
  }
  std::uintptr_t first() const { return reinterpret_cast<std::uintptr_t>(address_); }

  // Its array of the pool; before start().
  void attach(VersionedArray* array) { array_ = array; }
  VersionedArray* array() const { return array_; }
  // After the pool's restart: takes the restored contents, or keeps its own if there are none.
  Status start();
  // Ordinary memory with its contents; nothing is versioned any more.
  void leave();
  // The program frees the memory. As leave(); but the next version holds the contents as they are
  // now, and so do all that follow. Nothing happens at the address any more, and holds() nothing.
  // Any thread. Failure: it is an object as before.
  Status end();
  bool ended() const { return ended_; }

  // Hooks (perdure_ipv_abi.h).
  bool takes_boxes() const { return own_thread() && placed(); }
  perdure_ipv_answer box_begin(const perdure_ipv_box& box);
  // A box was not taken: somebody may look at the object. By the thread that makes the calls.
  void refuse_box(std::string onlooker);
  // True if something can be flushed early now: flush_early().
  bool box_end(const perdure_ipv_box& box, bool past_cache);
  void plain();
  // A store to the address was refused. True: try again.
  bool fault();

  // Nothing is stored until the next persistence point. True as box_end().
  bool finish_stores();
  // flush_early() is to come; false if it was to come before.
  bool queue_early_flush();
  // What of `range` finish_stores() can't help with is flushed by the caller: the range of the
  // device, and it counts as flushed. Empty: there is nothing to flush.
  ByteRange take_for_flush(ByteRange range);
  Status flush_early();

  // No version is under way. If something was stored, the contents as they are now are this
  // object's in the next one, and the next iteration begins. `way`: whether save() is called by
  // another thread, so that what can't wait is copied now.
  Status hand_over(Way way);
  bool changed() const override { return in_version_; }
  Result<std::uint64_t> save() override;
  // The version has been finished.
  void end_version(CommitOutcome outcome);

  // From the next persistence point on, if the tier is possible. For measurements.
  void use_tier(Tier tier);
  Status pin();
  Status unpin();

  perdure_ipv_object_status status() const;
  std::uint64_t boxes() const { return counts_.boxes.get(); }  // announced, and taken as such
  std::uint64_t boxes_refused() const { return counts_.boxes_refused.get(); }
  const std::string& onlooker() const { return onlooker_; }  // because of whom the last one was
  // Waited for before first stores, of what the status has as persist_ns.
  std::uint64_t first_stores_ns() const { return counts_.first_stores_ns.get(); }
  Tier tier() const { return tier_; }
  Tier asked() const { return asked_; }
  // Why it can be in COPY only; "" if it can be in STREAM.
  const std::string& why_copy() const { return why_copy_; }

 private:
  enum class Phase : std::uint8_t {
    off,      // not started, or left
    clean,    // nothing was stored since the contents were handed over, or restored
    writing,  // stores are possible and not seen
    sealed,   // something was stored; the contents are complete, and a store would be seen
    lost,     // as clean, but no version can be made any more
  };
  // What the version under way takes of the object, apart from what the next iteration does. Of
  // the thread that saves, until it has saved.
  struct Taken {
    std::uint64_t offset = 0;  // of the copy that the version will name
    LineSet dirty;             // of that copy
    bool pending = false;      // the memory is not in it
    std::uint64_t flushed_bytes = 0;
    std::uint64_t copied_bytes = 0;
    std::uint64_t waited_ns = 0;  // by the program
  };
  struct Written {
    std::uint64_t flushed_bytes = 0;
    std::uint64_t copied_bytes = 0;
  };
  bool placed() const { return tier_ == PERDURE_IPV_STREAM; }  // its contents are in the pool
  bool always_changed() const;
  Status keep_contents();
  void drop_kept();
  ByteRange all() const { return {0, bytes_}; }

  // Places and contents (object.cpp).
  Status make_views();
  Status may_be_placed() const;
  Status ensure_pool_places();
  Status ensure_memory_place();
  void start_tier(Tier tier);
  void start_copy();
  Status take_contents();
  bool show_first();
  void show(unsigned place, ViewAccess access);
  void show_idle(unsigned place);
  unsigned home_place() const;  // of the contents, while they are stored to
  std::byte* memory() const { return memory_ == nullptr ? address_ : memory_; }
  void note_all_changed();
  bool choose_new();
  void begin_iteration();
  void enter_writing();
  void plain_locked();

  // Boxes (object_rows.cpp).
  void lock_for_stores();
  bool own_thread() const { return this_thread() == thread_; }
  BoxRows rows_of(const perdure_ipv_box& box, BoxRows::Joins joins = BoxRows::Joins::yes) const;
  bool takes_box(const perdure_ipv_box& box, const BoxRows& rows) const;
  void enter_nest();
  void count_copied(const Iteration::Copied& copied);
  void complete_for_stores();
  ptrdiff_t place_box(const BoxRows& rows);
  bool worth_past_cache(std::uint64_t row_bytes) const;
  void note_past_cache(ByteRange lines);
  void tell_device();
  void complete_in_nest();
  bool seal();
  void stop_early_flush() noexcept;

  // Commits (object_commit.cpp).
  bool held(Hold hold) const;
  Status switch_tier(Tier tier);
  void seal_for_version(bool beside);
  void choose_protection(bool changes, bool beside);
  void take(bool beside, Status& status);
  Result<Written> write_out(std::uint64_t offset, const LineSet* dirty, bool pending) const;
  void count(const Written& written);
  void take_back(bool was_in_version);

  ObjectSurroundings& surroundings_;
  Device& device_;
  std::string name_;
  std::byte* address_;
  std::uint64_t bytes_;
  Tier asked_;
  bool whole_pages_;
  std::string why_copy_;
  VersionedArray* array_ = nullptr;
  std::unique_ptr<AddressViews> views_;
  std::vector<unsigned> pool_places_;  // by copy
  std::optional<unsigned> memory_place_;
  FileHandle memory_file_;
  std::byte* memory_ = nullptr;  // the object's memory besides the pool, mapped for good
  std::uintptr_t thread_ = 0;    // that makes the calls

  mutable FaultLock lock_;  // what is below
  Tier tier_;
  Tier usual_tier_ = PERDURE_IPV_COPY;  // without pins
  std::atomic<Phase> phase_{Phase::off};
  Iteration iteration_;
  std::uint32_t contents_ = 0;    // copy that holds what was handed over last, or restored
  bool has_new_ = false;          // this iteration's contents have a copy: iteration_
  LineSet changed_;               // since the version before
  LineSet dirty_;                 // of the working copy, stored to and not flushed
  std::vector<LineSet> lacking_;  // by copy: where it may differ from copy contents_
  bool in_version_ = false;       // the version under way holds it as it was handed over
  Taken taken_;
  bool pending_ = false;  // the memory is not in the working copy
  bool all_changed_ = false;
  bool left_writable_ = false;      // COPY: it changed so often that it counts as changed, unseen
  unsigned changed_in_turn_ = 0;    // versions in which it had changed, one after the other
  bool flushed_by_hand_ = false;    // finish_stores() was called
  std::atomic<bool> ended_{false};  // the program freed the memory
  bool in_nest_ = false;            // a box was announced, and box_end() is to come
  std::vector<ByteRange> untold_;   // lines of boxes past the cache, of which the device will hear
  std::uint64_t untold_bytes_ = 0;
  int pins_ = 0;
  std::atomic<std::uint32_t> early_{0};  // flush_early(): 0 no, 1 queued, 2 runs

  // Readable at any time. Added to under the lock, or by the one thread that flushes early.
  struct Counter {
    std::atomic<std::uint64_t> value{0};
    void add(std::uint64_t more) { value.store(get() + more, std::memory_order_relaxed); }
    std::uint64_t get() const { return value.load(std::memory_order_relaxed); }
  };
  struct Counters {
    Counter versions, rows, boxes, boxes_refused, fresh_row_bytes, copied_bytes, flushed_bytes,
        streamed_bytes;
    Counter swaps, swap_ns, guard_faults, waited_ns, first_stores_ns;
  };
  Counters counts_;
  std::string onlooker_;
};

}  // namespace perdure
