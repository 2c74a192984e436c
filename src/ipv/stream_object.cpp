// SPDX-License-Identifier: BSD-3-Clause
//
// Stream object: what its address shows, and when it may be stored to.
//
// It is a twin array of the pool, of whose copies its address shows one. old is the committed copy,
// new the working one (versioned_array.hpp, A1; iteration.hpp).
//
// Invariants
//   ipv.P1  Nothing stores to a copy that a version names, or that the version under way will name.
//       What an iteration stores goes to the working copy, and if the version under way will name
//       that one, another becomes it first (versioned_array.hpp, move_on()). So recovery can choose
//       only versions that do not name what the lines below call new. (The paper waits before the
//       first *read*. Reading harms nothing; an object that is written without being read would be
//       stored to too early.)
//   ipv.P2  In an iteration in the pool, all bytes are current in new, or those of the box that is
//       overwritten, or none. All others are current in old and were not stored to since the copies
//       changed roles. Where the lines of contents_.lacking(new) are not, old and new are equal, so
//       these bytes need not be copied.
//   ipv.P3  Outside of nests (perdure_ipv_abi.h, abi.R3) all of the object is current where the
//       address shows it: box_end() and plain() complete new before they return.
//   ipv.P4  While the address can be stored to and no box is announced, every line counts as
//       changed, and as dirty. So dirty_ says all of new that may not be durable, and changed_ all
//       in which new may differ from old: announced rows are in them, and what no box announces is
//       either refused by a read-only view, which leads to fault(), or happens when all lines
//       count. Without guard, plain() is the program's duty. Lines
//       that a row past the cache fills are not dirty, as copies past it are not: the thread that
//       announced the box makes the first fence of the version. A line that a row does not fill is,
//       and so is one of the ghost cells between rows that was copied through the cache, so that
//       the version flushes it, once.
//   ipv.P5  Whoever makes the address writable where it was not does so last: first the contents
//       are whole there. Several threads may fault at once; the lock lets one do it, and the
//       others try again when the view can be written. A thread that only reads is never refused:
//       views change in one step (address_views.hpp).
//   ipv.P6  A version takes what was dirty when the object was handed over (taken_) and nothing
//       else, flushes it, and the pool's commit fences (commit.cpp, 1). What another thread
//       flushed early was fenced there (device.hpp, D4).
//   ipv.P7  When a version was retracted its contents stay where they are, not committed, and all
//       lines count again (ipv.P4). When its outcome is unknown an object that was not stored to
//       since goes to ordinary memory at its next store, as neither copy may be stored to; one
//       that was has a copy that no version can name, and stays.
//   ipv.P8  When the program frees the memory of an object, which free() and the like tell before
//       they do it (perdure_ipv_c.cpp), the object ends: its contents at that moment are sealed in
//       new, the address shows ordinary memory for good, and holds()
//       denies it, so that no hook or fault of whoever has the addresses next leads here. The next
//       version takes what was sealed, as any; if it is retracted the one after it does (ipv.P7).
//   ipv.P9  What follows the object in its last page goes on in memory, whichever copy the address
//       shows, and is in no version: it may be somebody else's.
//
// When a version is finished. With lag 1, what a version flushes is on its way to the
// medium while the next iteration computes. The first fence of its commit, and the agreement of the
// ranks, are made by the program's thread at the next persistence point, which all ranks enter. So
// no store waits for a fence or for another rank, a helper exchanges no
// messages, and a crash loses two iterations at most: the one under way, and the one before it,
// whose version was not finished. With lag 0 the version is finished where it was begun.
#include "ipv/stream_object.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string_view>

#include "base/clock.hpp"
#include "base/this_thread.hpp"

namespace perdure {
namespace {

std::uint64_t whole_pages_of(std::uint64_t bytes) {
  return align_up(bytes, view_page_bytes);
}

// In a fault handler there is nobody to return an error to.
[[noreturn]] void end_with(std::string_view sentence) {
  [[maybe_unused]] const auto ignored = ::write(2, sentence.data(), sentence.size());
  std::abort();
}

[[noreturn]] void end_without_view() {
  end_with(
      "perdure: the kernel refuses to map an object's other copy (see vm.max_map_count); the last "
      "committed version is whole\n");
}

}  // namespace

StreamObject::StreamObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
                           std::uint64_t bytes, bool whole_pages)
    : InPlaceObject(surroundings, std::move(name), address, bytes, PERDURE_IPV_STREAM),
      whole_pages_(whole_pages),
      iteration_(surroundings.device, bytes),
      changed_(bytes),
      dirty_(bytes),
      taken_{.dirty = LineSet(bytes)} {
  if (surroundings.verify) check_.emplace();
}

Status StreamObject::may_be_placed() const {
  if (bytes_ == 0) return {Code::unsupported, "it has no bytes"};
  if (first() % view_page_bytes != 0) {
    return {Code::unsupported, "its address is no multiple of the page size"};
  }
  if (!whole_pages_) {
    return {Code::unsupported,
            "its last page may hold other memory; allocate it by perdure_ipv_alloc(), or say "
            "own_pages if it has whole pages"};
  }
  if (surroundings_.device.file().path.empty()) {
    return {Code::unsupported, "the pool's device is no file"};
  }
  if (!surroundings_.lags || array_->has_spare_copy()) return Status::success();
  return {Code::unsupported,  // ipv.P1
          "its array in the pool was made with lag 0, or for tier copy, and has no spare copy"};
}

Status StreamObject::make_places() {
  PERDURE_TRY(may_be_placed());
  const DeviceFile file = surroundings_.device.file();
  PERDURE_TRY_ASSIGN(auto identity, identify_file(file.path));
  views_ =
      std::make_unique<AddressViews>(address_, whole_pages_of(bytes_), surroundings_.move_views);
  for (std::uint32_t copy = 0; copy < array_->copies(); ++copy) {
    if (array_->copy_offset(copy) % view_page_bytes != 0) {
      return {Code::unsupported, "the pool's copies don't begin at pages"};
    }
    auto place =
        views_->add_place({file, identity, array_->copy_offset(copy), views_->bytes(), true});
    if (!place.ok()) return {Code::unsupported, place.status().message()};
    places_.push_back(place.value());
  }
  return Status::success();
}

void StreamObject::show(unsigned place, ViewAccess access) {
  if (views_ == nullptr) return;
  const std::uint64_t start_ns = monotonic_ns();
  if (!views_->show(place, access)) end_without_view();
  counts_.swap_ns.add(monotonic_ns() - start_ns);
}

// As it is between a persistence point and the next store.
void StreamObject::show_idle() {
  show(home_place(), surroundings_.guard ? ViewAccess::read : ViewAccess::write);
}

unsigned StreamObject::home_place() const {
  return places_[array_->working_copy()];
}

// Huge pages of a file, for example, can't be replaced in part: then nothing has changed.
Status StreamObject::start() {
  PERDURE_TRY(make_places());
  thread_ = this_thread();
  lock_.favour_this_thread();
  contents_.begin(array_->copies(), bytes_);
  const std::uint32_t copy = is_restored() ? array_->consistent_copy() : array_->working_copy();
  take_contents();
  take_rest(address_, copy);
  if (views_->show(places_[copy], surroundings_.guard ? ViewAccess::read : ViewAccess::write)) {
    return Status::success();
  }
  phase_ = Phase::off;
  views_.reset();
  return {Code::unsupported, "the kernel maps nothing in the place of its memory"};
}

// Without touching what the address shows.
void StreamObject::take_contents() {
  if (is_restored()) {
    contents_.restored(array_->consistent_copy());
    phase_ = Phase::clean;
    return;
  }
  // Its own contents are what the first version will hold: all of them are still to be saved.
  const std::uint32_t copy = array_->working_copy();
  iteration_.begin_whole(array_->copy_offset(copy), contents_.lacking(copy));
  surroundings_.device.store(iteration_.new_offset(), address_, bytes_);
  note_all_changed();
  phase_ = Phase::sealed;
}

// ipv.P9. The device does not hear of it: it may end before its last page does.
void StreamObject::take_rest(const std::byte* from, std::uint32_t copy) {
  std::memcpy(surroundings_.device.base() + array_->copy_offset(copy) + bytes_, from + bytes_,
              whole_pages_of(bytes_) - bytes_);
}

void StreamObject::leave() {
  const std::lock_guard<FaultLock> lock(lock_);
  if (phase_ == Phase::off) return;
  stop_early_flush();
  if (phase_ == Phase::writing) complete_for_stores();
  if (views_ != nullptr && !views_->leave()) end_without_view();
  phase_ = Phase::off;
}

// ipv.P8.
Status StreamObject::end(Going how) {
  lock_for_stores();
  const std::lock_guard<FaultLock> lock(lock_, std::adopt_lock);
  if (!ended_ && phase_ != Phase::off) {
    stop_early_flush();
    seal_for_version();
    if (views_ != nullptr && !views_->leave()) end_without_view();
    views_.reset();
  }
  ended_ = true;
  moved_ = how == Going::moved;
  return Status::success();
}

Status StreamObject::resize(const ObjectMemory& /*to*/, const ResizeInPool& /*in_pool*/) {
  return {Code::unsupported, "it got another size or place"};
}

Status StreamObject::pin() {
  return Status(Code::wrong_state, "object ", quoted(name_),
                " is in tier stream, where its pages move: pin it before perdure_ipv_restart(), or "
                "leave it in tier copy");
}

Status StreamObject::unpin() {
  return Status(Code::wrong_state, "object ", quoted(name_), " is not pinned");
}

void StreamObject::note_all_changed() {
  if (all_changed_ && phase_ == Phase::writing) return;
  all_changed_ = true;
  changed_.add_all();
  dirty_.add_all();
}

// ipv.P1.
void StreamObject::begin_iteration() {
  const bool free = !in_version_ || array_->move_on();
  PERDURE_ASSERT(free);  // may_be_placed()
  const std::uint32_t copy = array_->working_copy();
  const std::uint64_t old_offset = array_->copy_offset(contents_.holder());
  iteration_.begin(old_offset, array_->copy_offset(copy), contents_.lacking(copy));
  take_rest(surroundings_.device.base() + old_offset, copy);
  counts_.swaps.add(1);
}

// The address can be stored to from here on.
void StreamObject::enter_writing() {
  show(home_place(), ViewAccess::write);
  phase_ = Phase::writing;
}

void StreamObject::complete_for_stores() {
  tell_device();
  counts_.copied_bytes.add(iteration_.complete_in_cache());
}

// Nothing was stored that no box announced.
void StreamObject::compare_shown() {
  if (check_ && !all_changed_) check_->compare(iteration_.new_contents(), bytes_, changed_);
}

// ipv.P5: new is completed before it can be stored to.
void StreamObject::plain_locked() {
  if (phase_ == Phase::writing && all_changed_) return;
  if (phase_ == Phase::clean) begin_iteration();
  stop_early_flush();
  complete_for_stores();
  if (!in_nest_) compare_shown();
  note_all_changed();
  if (phase_ != Phase::writing) enter_writing();
}

// Waits until the object may be stored to, and takes the lock (ipv.P1, ipv.P6).
void StreamObject::lock_for_stores() {
  const auto& held = surroundings_.held;
  for (;;) {
    if (held.load(std::memory_order_acquire) != 0) {
      if (surroundings_.committing == this_thread()) {  // it would wait for itself
        end_with(
            "perdure: an object is stored to while its version is made, perhaps by a receive that "
            "is pending across perdure_ipv_persist(); use another buffer, or tier copy\n");
      }
      const std::uint64_t start_ns = monotonic_ns();
      surroundings_.wait_while_held();
      counts_.first_stores_ns.add(monotonic_ns() - start_ns);
    }
    lock_.lock();
    if (held.load(std::memory_order_acquire) == 0) break;
    lock_.unlock();
  }
  if (phase_ != Phase::lost) return;
  if (views_ != nullptr && !views_->leave()) end_without_view();  // ipv.P7
  phase_ = Phase::off;
}

void StreamObject::plain() {
  lock_for_stores();
  if (phase_ != Phase::off && !ended_) plain_locked();
  lock_.unlock();
}

bool StreamObject::fault(std::uintptr_t /*address*/) {
  if (phase_ == Phase::off) return false;
  lock_for_stores();
  if (!ended_ && (phase_ == Phase::clean || phase_ == Phase::sealed)) {
    counts_.guard_faults.add(1);
    plain_locked();
  }
  lock_.unlock();
  return true;
}

}  // namespace perdure
