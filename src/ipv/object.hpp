// SPDX-License-Identifier: BSD-3-Clause
//
// Object: one array of a program that gets a version at every persistence point, at the address
// where it is. The invariants, and why they are enough, stand at the top of object.cpp.
//
// Threads: the row hooks, hand_over() and what stands below it are called by the thread that
// started the object; plain() and fault() by any, at the same time; save() and end_version() by the
// thread that commits; flush_early() by the flushing thread. Failure: if the kernel refuses to move
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
#include "ipv/fault_lock.hpp"
#include "ipv/iteration.hpp"
#include "ipv/line_set.hpp"
#include "ipv/open_rows.hpp"
#include "ipv/tier_choice.hpp"
#include "perdure/perdure_ipv.h"
#include "perdure/perdure_ipv_abi.h"
#include "pmem/device.hpp"
#include "pmem/parallel.hpp"
#include "pool/commit.hpp"
#include "pool/twin_writer.hpp"
#include "pool/versioned_array.hpp"

namespace perdure {

// What the objects of a set share.
struct ObjectSurroundings {
  Device& device;
  ParallelWriter& writer;  // for the committing thread; and for hand_over(), when none commits
  bool guard = true;
  bool move_views = true;                     // false: as on an old kernel
  std::atomic<std::uint32_t> under_way{0};    // 1: a version is being made
  std::atomic<bool> beside{false};            // by another thread than the program's
  std::atomic<std::uintptr_t> committing{0};  // this_thread() of the one that makes it
  std::uint64_t iteration_ns = 0;  // from the persistence point before to this one, of the program
  std::atomic<std::uint32_t> unfenced{0};  // the program's thread copied and did not fence (D4)
  void wait_for_version() const noexcept;  // also in a fault handler
  void end_wait() noexcept;
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
  bool holds(std::uintptr_t address) const { return address - first() < bytes_; }
  std::uintptr_t first() const { return reinterpret_cast<std::uintptr_t>(address_); }

  // Its array of the pool; before start().
  void attach(VersionedArray* array) { array_ = array; }
  VersionedArray* array() const { return array_; }
  // After the pool's restart: takes the restored contents, or keeps its own if there are none.
  Status start();
  // Ordinary memory with its contents; nothing is versioned any more.
  void leave();

  // Hooks (perdure_ipv_abi.h); offsets from the address.
  bool rows_count() const;  // now, and for the calling thread
  perdure_ipv_row row_begin(ByteRange row);
  void row_end(ByteRange row);
  struct Box {
    std::uint64_t first;
    unsigned dimensions;
    const std::size_t* counts;
    const std::size_t* strides;
  };
  perdure_ipv_row box_begin(const Box& box);
  // True if something can be flushed early now: flush_early().
  bool nest_end();
  void plain();
  // A store to the address was refused. True: try again.
  bool fault();

  // Nothing is stored until the next persistence point. True as nest_end().
  bool finish_stores();
  // flush_early() is to come; false if it was to come before.
  bool queue_early_flush();
  // What of `range` finish_stores() can't help with is flushed by the caller: the range of the
  // device, and it counts as flushed. Empty: there is nothing to flush.
  ByteRange take_for_flush(ByteRange range);
  Status flush_early();

  // Calls that `beside` will be saved by another thread: what can't wait is copied now.
  Status hand_over(bool beside);
  bool changed() const override;
  Result<std::uint64_t> save() override;
  void end_version(CommitOutcome outcome);

  // From the next persistence point on, if the tier is possible. For measurements.
  void use_tier(Tier tier);
  Status pin();
  Status unpin();

  perdure_ipv_object_status status() const;
  Tier tier() const { return tier_; }
  Tier asked() const { return asked_; }
  // Why it can be in COPY only; "" if it can be in STREAM.
  const std::string& why_copy() const { return why_copy_; }
  const std::optional<TierChoice>& choice() const { return choice_; }

 private:
  enum class Phase : std::uint8_t {
    off,      // not started, or left
    clean,    // the address shows the committed contents, nothing was stored since
    writing,  // stores are possible and not seen
    sealed,   // something was stored; the contents are complete, and a store would be seen
    handed,   // as sealed, and being made a version
    lost,     // as clean or sealed, but no version can be made any more
  };
  bool placed() const { return tier_ == PERDURE_IPV_STREAM; }  // its contents are in the pool
  bool always_changed() const;
  ByteRange all() const { return {0, bytes_}; }

  // Places and contents (object.cpp).
  Status make_views();
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
  void begin_iteration();
  void enter_writing();
  void plain_locked();

  // Rows (object_rows.cpp).
  void lock_for_stores();
  bool own_thread() const;
  bool takes_rows(ByteRange row);
  void enter_nest();
  void count_streamed(std::uint64_t bytes);
  void complete_for_stores();
  ptrdiff_t place_row(ByteRange row, std::uint64_t row_bytes);
  ptrdiff_t take_row_buffer(ByteRange row);
  void complete_in_nest();
  bool seal();
  void stop_early_flush() noexcept;

  // Commits (object_commit.cpp).
  Status switch_tier(Tier tier);
  Status choose_tier();
  Status save_dirty();
  Status save_pending();
  void take_committed();

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
  std::optional<TierChoice> choice_;
  std::uintptr_t thread_ = 0;  // that makes the calls

  mutable FaultLock lock_;  // what stands below
  Tier tier_;
  Tier usual_tier_ = PERDURE_IPV_COPY;  // without pins and choices
  std::atomic<Phase> phase_{Phase::off};
  Iteration iteration_;
  OpenRows open_rows_;
  LineSet changed_;               // since the version before
  LineSet dirty_;                 // of the working copy, stored to and not flushed
  std::vector<LineSet> lacking_;  // by copy: where it may differ from the committed one
  bool pending_ = false;          // the memory is not in the working copy
  bool all_changed_ = false;
  bool in_nest_ = false;  // rows were announced, and nest_end() is to come
  int pins_ = 0;
  std::atomic<std::uint32_t> early_{0};  // flush_early(): 0 no, 1 queued, 2 runs

  // Readable at any time. Added to under the lock, or by the one thread that flushes or saves.
  struct Counter {
    std::atomic<std::uint64_t> value{0};
    void add(std::uint64_t more) { value.store(get() + more, std::memory_order_relaxed); }
    std::uint64_t get() const { return value.load(std::memory_order_relaxed); }
  };
  struct Counters {
    Counter versions, rows, fresh_row_bytes, copied_bytes, flushed_bytes, streamed_bytes;
    Counter swaps, swap_ns, guard_faults, waited_ns;
  };
  Counters counts_;
};

}  // namespace perdure
