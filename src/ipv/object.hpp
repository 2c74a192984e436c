// SPDX-License-Identifier: BSD-3-Clause
//
// Object: memory of a program that gets a version at every persistence point, at the address where
// it is. What stays the same however that is done; the ways are CopyObject, StreamObject and
// PairObject.
//
// Threads: hand_over() and what is below it are called by the thread that started the object, and
// the hooks do nothing for others; touch(), fault() and end() by any, at the same time.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "base/status.hpp"
#include "ipv/ipv_options.hpp"
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
  ParallelWriter& writer;  // for the flushing thread; and for the program's, when that one rests
  bool guard = true;
  bool move_views = true;          // false: as on an old kernel
  bool verify = false;             // versions are compared with plain copies (version_check.hpp)
  std::uint64_t next_version = 0;  // that is made, or will be
  bool lags = false;               // a version is finished one persistence point later (ipv.P1)
  bool saves_beside = false;       // what can be saved beside the program is (save_beside())
  // Stores of this iteration may go unseen by a page tracker (buffer_memory.hpp).
  bool unseen = false;
  bool started = false;    // objects have been started, or are now
  bool keeps_own = false;  // of other ranks' version they have what is theirs in their memory
  // The program is at a persistence point: objects whose pages change must not be stored to.
  std::atomic<std::uint32_t> held{0};
  std::atomic<std::uintptr_t> committing{0};  // this_thread() of the one that is there
  void wait_while_held() const noexcept;      // also in a fault handler
  void hold(bool on) noexcept;
};

// Where an object lies now; `other` is the second array of a pair, else null. `whole_pages`:
// nothing else lies in its last page.
struct ObjectMemory {
  std::byte* address = nullptr;
  std::byte* other = nullptr;
  std::uint64_t bytes = 0;
  bool whole_pages = false;
};

// Gives the object's array in the pool the new size, in another extent if it must lie `elsewhere`
// (Pool::resize_written()).
using ResizeInPool = std::function<Status(bool elsewhere)>;

// How the program takes memory from an object: it may be nobody's then, or realloc() says where it
// is.
enum class Going : std::uint8_t { freed, moved };

// Readable at any time. Added to by one thread at a time.
struct ObjectCounter {
  std::atomic<std::uint64_t> value{0};
  void add(std::uint64_t more) { value.store(get() + more, std::memory_order_relaxed); }
  std::uint64_t get() const { return value.load(std::memory_order_relaxed); }
};

class InPlaceObject : public TwinWriter {
 public:
  const std::string& name() const { return name_; }
  std::byte* address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  std::uintptr_t first() const { return reinterpret_cast<std::uintptr_t>(address()); }
  // Of what it was named with, or given since; also after it has ended.
  virtual bool overlaps(std::uintptr_t begin, std::uintptr_t end) const {
    return bytes_ != 0 && begin < first() + bytes_ && first() < end;
  }
  // Of its memory, which is as long as bytes() in each place: those of a pair, else twice the same.
  // Asked by calls that free memory, so nothing is allocated.
  using Beginnings = std::array<std::uintptr_t, 2>;
  virtual Beginnings beginnings() const { return {first(), first()}; }
  // It has not ended, and has a byte there. Any thread; nowhere while its place changes.
  bool reaches_into(std::uintptr_t begin, std::uintptr_t end) const;
  bool holds(std::uintptr_t address) const { return reaches_into(address, address + 1); }
  // A store there may be refused because of it: where it holds the address, and where pages move
  // also in the rest of its last page.
  virtual bool shows(std::uintptr_t address) const { return holds(address); }

  // Its array of the pool; before start().
  void attach(VersionedArray* array) { array_ = array; }
  VersionedArray* array() const { return array_; }
  // After the pool's restart: takes the restored contents, or keeps its own if there are none.
  // Code::unsupported says why this way is not possible here; nothing has changed then.
  virtual Status start() = 0;
  // Where another number of ranks made the pool, the restart makes a version before start(), which
  // lacks the objects (rank_change.hpp, pool.R5).
  Result<std::uint64_t> save() final {
    return surroundings_.started ? save_contents() : Result<std::uint64_t>(std::uint64_t{0});
  }
  std::byte* memory() const final { return address_; }
  // Ordinary memory with its contents; nothing is versioned any more.
  virtual void leave() = 0;
  // The program frees the memory. As leave(); but the next version holds the contents as they are
  // now, and so do all that follow. Nothing happens at the address any more, and holds() nothing.
  // Any thread. Failure: it is an object as before. If it has moved(), what it holds is where only
  // the program knows, and there is no next version before resize().
  virtual Status end(Going how) = 0;
  bool ended() const { return ended_; }
  bool moved() const { return moved_; }
  // It has ended, and that was not reported yet. By the thread that makes the calls.
  bool reports_end() { return ended_ && !std::exchange(end_reported_, true); }
  // From now on its contents are what lies at `to`, of that size; it has ended no more. No version
  // takes it meanwhile, and nobody stores to it. Failure: all is as before; Code::unsupported says
  // why this way of versions ends with that.
  virtual Status resize(const ObjectMemory& to, const ResizeInPool& in_pool) = 0;

  // Hooks (perdure_ipv_abi.h). What takes no boxes takes stores as they come. refuse_box(): a box
  // was not taken, as somebody may look at the object; by the thread that makes the calls.
  // box_end() is true if something can be flushed early now: flush_early().
  virtual bool takes_boxes() const { return false; }
  void refuse_box(std::string onlooker);
  virtual perdure_ipv_answer box_begin(const perdure_ipv_box& /*box*/) {
    return {0, PERDURE_IPV_NO_BOX};
  }
  virtual bool box_end(const perdure_ipv_box& /*box*/, bool /*past_cache*/) { return false; }
  virtual void plain() {}

  // Flushes before the persistence point: nothing is stored until then. finish_stores() is true,
  // and queue_early_flush() once, if flush_early() is to come; take_for_flush() is what of `range`
  // the caller flushes, a range of the device.
  virtual bool finish_stores() { return false; }
  virtual bool queue_early_flush() { return false; }
  virtual Status flush_early() { return Status::success(); }
  virtual ByteRange take_for_flush(ByteRange /*range*/) { return {}; }

  // Something that can't be seen, or is refused, is about to store to the bytes.
  virtual void touch(ByteRange range) = 0;
  // A store to the address was refused. True: try again.
  virtual bool fault(std::uintptr_t /*address*/) { return false; }
  virtual Status pin() = 0;
  virtual Status unpin() = 0;

  // No version is under way. If something was stored, the contents as they are now are this
  // object's in the next one, and the next iteration begins.
  virtual Status hand_over() = 0;
  // As hand_over(), at a persistence point that begins no version.
  virtual void pass() {}
  // save() left it to save_beside(), of the flushing thread, which is to be queued once.
  virtual bool is_saved_beside() { return false; }
  virtual void save_beside() {}
  // Before the version is finished, and after the helper was waited for: what that one did
  // not do of save().
  virtual Status finish_save() { return Status::success(); }
  // What the version that hand_over() began holds; nothing was stored since.
  virtual const std::byte* contents() const { return address_; }
  // `plain` is a copy of contents(), and stays until the next one (version_check.hpp).
  virtual void take_plain_copy(const std::byte* /*plain*/) {}
  // The version has been finished.
  virtual void end_version(CommitOutcome outcome) = 0;
  virtual Result<std::uint64_t> save_contents() = 0;  // save()

  virtual Tier tier() const = 0;
  Tier asked() const { return asked_; }
  // Why it is copied though something else was asked for; "" if it is not.
  const std::string& why_copy() const { return why_copy_; }
  virtual perdure_ipv_object_status status() const;
  std::uint64_t boxes() const { return counts_.boxes.get(); }  // announced, and taken as such
  std::uint64_t boxes_refused() const { return counts_.boxes_refused.get(); }
  const std::string& onlooker() const { return onlooker_; }  // because of whom the last one was
  // Waited for before first stores, of what the status has as persist_ns.
  std::uint64_t first_stores_ns() const { return counts_.first_stores_ns.get(); }

 protected:
  InPlaceObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
                std::uint64_t bytes, Tier asked);
  ByteRange all() const { return {0, bytes_}; }
  // `place` notes it. Nobody sees half of that.
  template <typename Place>
  void take_place(const Place& place) {
    ++place_number_;
    place();
    ended_ = moved_ = end_reported_ = false;
    ++place_number_;
  }
  // At the start the pool has its contents.
  bool is_restored() const { return array_->committed() && !surroundings_.keeps_own; }

  struct Counters {
    ObjectCounter versions, rows, boxes, boxes_refused, fresh_row_bytes, copied_bytes,
        flushed_bytes, streamed_bytes, swaps, swap_ns, guard_faults, waited_ns, first_stores_ns;
  };

  ObjectSurroundings& surroundings_;
  const std::string name_;
  std::atomic<std::byte*> address_;
  std::atomic<std::uint64_t> bytes_;
  std::atomic<std::uint32_t> place_number_ = 0;  // that it had; odd while the next one is noted
  const Tier asked_;
  std::string why_copy_;
  VersionedArray* array_ = nullptr;
  std::atomic<bool> ended_{false};  // the program freed the memory
  std::atomic<bool> moved_{false};  // by realloc(), and did not say where
  bool end_reported_ = false;
  Counters counts_;
  std::string onlooker_;
};

}  // namespace perdure
