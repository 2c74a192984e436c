// SPDX-License-Identifier: BSD-3-Clause
//
// Object: what its address shows, and when it may be stored to.
//
// An object is a twin array of the pool. In tier STREAM it lives in the pool: its address shows a
// view of one of the copies. In COPY it lives in memory beside, all of which is copied to the
// working copy. old is the committed copy, new the working one (versioned_array.hpp, A1;
// iteration.hpp).
//
// Invariants
//   P1  Nothing stores to a copy that a version names, or that the version under way will name.
//       What an iteration stores goes to the working copy, and if the version under way will name
//       that one, another becomes it first (versioned_array.hpp, move_on()). An object whose array
//       has no spare copy is in COPY, and its iteration gets a copy when no version is under way.
//       So recovery can choose only versions that name neither new nor what the lines below call
//       new. (The paper waits before the first *read*. Reading harms nothing; an object that is
//       written without being read would be stored to too early.)
//   P2  In an iteration in the pool, the bytes of its interval are current in new. All others are
//       current in old and were not stored to since the copies changed roles. Where the lines of
//       lacking_[new] are not, old and new are equal, so these bytes need not be copied.
//   P3  Outside of nests (perdure_ipv_abi.h, R3) all of the object is current where the address
//       shows it: box_end() and plain() complete new before they return.
//   P4  While the address can be stored to and no box is announced, every line counts as changed,
//       and as dirty, or the memory as pending. So dirty_ and pending_ say all of new that may not
//       be durable, and changed_ all in which new may differ from old: announced rows are in them,
//       and what no box announces is either refused by a read-only view, which leads to fault(), or
//       happens when all lines count: also of an object in COPY that is left writable, as it had
//       changed in each of the last versions. Without guard, plain() is the program's duty. Lines
//       that a row past the cache fills are not dirty, as copies past it are not: the thread that
//       announced the box makes the first fence of the version. A line that a row does not fill is,
//       and so is one of the ghost cells between rows that was copied through the cache, so that
//       the version flushes it, once.
//   P5  Whoever makes the address writable where it was not does so last: first the contents are
//       whole there. Several threads may fault at once; the lock lets one do it, and the others try
//       again when the view can be written. A thread that only reads is never refused: views
//       change in one step (address_views.hpp).
//   P6  A version takes what was dirty and pending when the object was handed over (taken_) and
//       nothing else, flushes or copies it, and the pool's commit fences (commit.cpp, 1). Copies by
//       another thread than the committing one were fenced there (device.hpp, D4). Memory that a
//       thread copies is not stored to before it has (Hold::memory); a copy that it flushes is not
//       stored to either (P1).
//   P7  When a version was retracted its contents stay where they are, not committed, and all lines
//       count again (P4). When its outcome is unknown an object that was not stored to since goes
//       to ordinary memory at its next store, as neither copy may be stored to; one that was has a
//       copy that no version can name, and stays.
//   P8  When the program frees the memory of an object, which free() and the like tell before they
//       do it (perdure_ipv_c.cpp), the object ends: its contents at that moment are sealed, in new
//       or in memory of the runtime's, the address shows ordinary memory for good, and holds()
//       denies it, so that no hook or fault of whoever has the addresses next leads here. The next
//       version takes what was sealed, as any; if it is retracted the one after it does (P7).
//
// When a version is finished. With lag 1, what a version flushes and copies is on its way to the
// medium while the next iteration computes. The first fence of its commit, and the agreement of the
// ranks, are made by the program's thread at the next persistence point, which all ranks enter. So
// no store waits for a fence or for another rank, a thread beside the program exchanges no
// messages, and a crash loses two iterations at most: the one under way, and the one before it,
// whose version was not finished. With lag 0 the version is finished where it was begun.
#include "ipv/object.hpp"

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

void ObjectSurroundings::set_hold(Hold next) noexcept {
  hold.store(next, std::memory_order_release);
  hold.notify_all();
}

void ObjectSurroundings::wait_while(Hold held) const noexcept {
  while (hold.load(std::memory_order_acquire) == held) hold.wait(held);
}

InPlaceObject::InPlaceObject(ObjectSurroundings& surroundings, std::string name, std::byte* address,
                             std::uint64_t bytes, Tier asked, bool whole_pages)
    : surroundings_(surroundings),
      device_(surroundings.device),
      name_(std::move(name)),
      address_(address),
      bytes_(bytes),
      asked_(asked),
      whole_pages_(whole_pages),
      tier_(asked),
      iteration_(surroundings.device, bytes),
      changed_(bytes),
      dirty_(bytes),
      taken_{.dirty = LineSet(bytes)} {}

InPlaceObject::~InPlaceObject() {
  if (memory_ != nullptr) unmap_shared_view(memory_, whole_pages_of(bytes_));
}

// Stores to it are not seen.
bool InPlaceObject::always_changed() const {
  return !ended_ && tier_ == PERDURE_IPV_COPY &&
         (views_ == nullptr || pins_ > 0 || !surroundings_.guard || left_writable_);
}

Status InPlaceObject::make_views() {
  if (views_ != nullptr) return Status::success();
  if (first() % view_page_bytes != 0) {
    return {Code::unsupported, "its address is no multiple of the page size"};
  }
  if (!whole_pages_)
    return {Code::unsupported,
            "its last page may hold other memory; allocate it by perdure_ipv_alloc(), or say "
            "own_pages if it has whole pages"};
  views_ =
      std::make_unique<AddressViews>(address_, whole_pages_of(bytes_), surroundings_.move_views);
  return Status::success();
}

// P1.
Status InPlaceObject::may_be_placed() const {
  if (!surroundings_.lags || array_->has_spare_copy()) return Status::success();
  return {Code::unsupported,
          "its array in the pool was made with lag 0, or for tier copy, and has no spare copy"};
}

Status InPlaceObject::ensure_pool_places() {
  if (!pool_places_.empty()) return Status::success();
  const DeviceFile file = device_.file();
  if (file.path.empty()) return {Code::unsupported, "the pool's device is no file"};
  PERDURE_TRY(may_be_placed());
  PERDURE_TRY_ASSIGN(auto identity, identify_file(file.path));
  PERDURE_TRY(make_views());
  std::vector<unsigned> places;
  for (std::uint32_t copy = 0; copy < array_->copies(); ++copy) {
    if (array_->copy_offset(copy) % view_page_bytes != 0) {
      return {Code::unsupported, "the pool's copies don't begin at pages"};
    }
    auto place =
        views_->add_place({file, identity, array_->copy_offset(copy), views_->bytes(), true});
    if (!place.ok()) return place.status();
    places.push_back(place.value());
  }
  pool_places_ = std::move(places);
  return Status::success();
}

Status InPlaceObject::ensure_memory_place() {
  if (memory_place_) return Status::success();
  PERDURE_TRY(make_views());
  PERDURE_TRY_ASSIGN(auto pages, make_memory_pages(views_->bytes(), memory_file_));
  PERDURE_TRY_ASSIGN(auto mapped, map_shared_view(pages, nullptr, true));
  auto place = views_->add_place(pages);
  if (!place.ok()) {
    unmap_shared_view(mapped, views_->bytes());
    return place.status();
  }
  memory_ = mapped;
  memory_place_ = place.value();
  return Status::success();
}

void InPlaceObject::show(unsigned place, ViewAccess access) {
  const std::uint64_t start_ns = monotonic_ns();
  if (!views_->show(place, access)) end_without_view();
  counts_.swap_ns.add(monotonic_ns() - start_ns);
}

// As it is between a persistence point and the next store.
void InPlaceObject::show_idle(unsigned place) {
  const bool guarded = surroundings_.guard && pins_ == 0 && !left_writable_;
  show(place, guarded ? ViewAccess::read : ViewAccess::write);
}

unsigned InPlaceObject::home_place() const {
  return placed() ? pool_places_[array_->working_copy()] : *memory_place_;
}

// Decides what is possible; what was asked for if it is.
void InPlaceObject::start_tier(Tier tier) {
  if (pins_ > 0) {  // its pages must not change
    why_copy_ = "it was pinned before the restart";
    return start_copy();
  }
  const Status possible = tier == PERDURE_IPV_STREAM ? ensure_pool_places() : ensure_memory_place();
  if (!possible.ok()) {
    why_copy_ = possible.message();
    return start_copy();
  }
  tier_ = usual_tier_ = tier == PERDURE_IPV_STREAM ? tier : PERDURE_IPV_COPY;
}

// What is always possible.
void InPlaceObject::start_copy() {
  tier_ = usual_tier_ = PERDURE_IPV_COPY;
  if (pins_ == 0 && ensure_memory_place().ok()) return;
  views_.reset();
  pool_places_.clear();
}

Status InPlaceObject::start() {
  start_tier(asked_);
  thread_ = this_thread();
  lock_.favour_this_thread();
  lacking_.assign(array_->copies(), LineSet(bytes_));
  for (LineSet& lines : lacking_) lines.add_all();
  PERDURE_TRY(take_contents());
  if (views_ == nullptr || show_first()) return Status::success();
  why_copy_ = "the kernel maps nothing in the place of its memory";
  tier_ = usual_tier_ = PERDURE_IPV_COPY;
  views_.reset();
  if (memory_ != nullptr) unmap_shared_view(memory_, whole_pages_of(bytes_));
  memory_ = nullptr;
  return take_contents();
}

// Without touching what the address shows, if there are views.
Status InPlaceObject::take_contents() {
  if (array_->committed()) {
    contents_ = array_->consistent_copy();
    lacking_[contents_].clear();
    phase_ = Phase::clean;
    if (placed()) return Status::success();
    return verify_and_copy(device_, array_->entry(), bytes_, memory(), nullptr);
  }
  // Its own contents are what the first version will hold: all of them are still to be saved.
  const std::uint32_t copy = array_->working_copy();
  iteration_.begin_whole(array_->copy_offset(copy), lacking_[copy]);
  has_new_ = true;
  if (placed()) device_.store(iteration_.new_offset(), address_, bytes_);
  if (!placed() && memory_ != nullptr) std::memcpy(memory_, address_, bytes_);
  note_all_changed();
  phase_ = Phase::sealed;
  return Status::success();
}

// Huge pages of a file, for example, can't be replaced in part: then nothing has changed.
bool InPlaceObject::show_first() {
  const unsigned place =
      placed() && phase_ == Phase::clean ? pool_places_[contents_] : home_place();
  return views_->show(place, surroundings_.guard ? ViewAccess::read : ViewAccess::write);
}

void InPlaceObject::leave() {
  const std::lock_guard<FaultLock> lock(lock_);
  if (phase_ == Phase::off) return;
  stop_early_flush();
  if (phase_ == Phase::writing) complete_for_stores();
  if (views_ != nullptr && !views_->leave()) end_without_view();
  phase_ = Phase::off;
}

// P8: of what a version may still have to take, nothing is at the address.
Status InPlaceObject::keep_contents() {
  if (placed() || memory_ != nullptr) return Status::success();
  PERDURE_TRY_ASSIGN(auto pages, make_memory_pages(whole_pages_of(bytes_), memory_file_));
  PERDURE_TRY_ASSIGN(auto mapped, map_shared_view(pages, nullptr, true));
  std::memcpy(mapped, address_, bytes_);
  memory_ = mapped;
  return Status::success();
}

// No version will take the contents of an object that has ended: it is clean, and in none.
void InPlaceObject::drop_kept() {
  if (!ended_ || in_version_ || phase_ != Phase::clean || memory_ == nullptr) return;
  unmap_shared_view(memory_, whole_pages_of(bytes_));
  memory_ = nullptr;
  memory_file_ = FileHandle();
}

Status InPlaceObject::end() {
  lock_for_stores();
  const std::lock_guard<FaultLock> lock(lock_, std::adopt_lock);
  if (ended_) return Status::success();
  if (phase_ == Phase::off) {
    ended_ = true;
    return Status::success();
  }
  stop_early_flush();
  PERDURE_TRY(keep_contents());
  seal_for_version(false);
  if (views_ != nullptr && !views_->leave()) end_without_view();
  views_.reset();
  ended_ = true;
  drop_kept();
  return Status::success();
}

void InPlaceObject::note_all_changed() {
  if (all_changed_ && phase_ == Phase::writing) return;
  all_changed_ = true;
  changed_.add_all();
  if (placed()) {
    dirty_.add_all();
  } else {
    pending_ = true;
  }
}

// P1. False: this iteration's contents get no copy before the version under way is finished.
bool InPlaceObject::choose_new() {
  if (has_new_) return true;
  if (in_version_ && !array_->move_on()) return false;
  const std::uint32_t copy = array_->working_copy();
  iteration_.begin(array_->copy_offset(contents_), array_->copy_offset(copy), lacking_[copy]);
  has_new_ = true;
  return true;
}

void InPlaceObject::begin_iteration() {
  if (!placed()) return;  // choose_new() comes when the contents are to be saved
  const bool chosen = choose_new();
  PERDURE_ASSERT(chosen);  // ensure_pool_places()
  counts_.swaps.add(1);
}

// The address can be stored to from here on.
void InPlaceObject::enter_writing() {
  if (views_ != nullptr) show(home_place(), ViewAccess::write);
  phase_ = Phase::writing;
}

void InPlaceObject::complete_for_stores() {
  tell_device();
  if (placed()) counts_.copied_bytes.add(iteration_.complete_in_cache());
}

// P5: new is completed before it can be stored to.
void InPlaceObject::plain_locked() {
  if (phase_ == Phase::writing && all_changed_) return;
  if (phase_ == Phase::clean) begin_iteration();
  stop_early_flush();
  complete_for_stores();
  note_all_changed();
  if (phase_ != Phase::writing) enter_writing();
}

// Of what was handed over, a thread copies the memory; under the lock.
bool InPlaceObject::held(Hold hold) const {
  return hold == Hold::all || (hold == Hold::memory && in_version_ && taken_.pending);
}

// Waits until the object may be stored to, and takes the lock (P1, P6).
void InPlaceObject::lock_for_stores() {
  std::uint64_t waited_ns = 0;
  const auto wait_while = [&](Hold hold) {
    const std::uint64_t start_ns = monotonic_ns();
    surroundings_.wait_while(hold);
    waited_ns += monotonic_ns() - start_ns;
  };
  for (;;) {
    if (surroundings_.hold.load(std::memory_order_acquire) == Hold::all) {
      if (surroundings_.committing == this_thread()) {  // it would wait for itself
        end_with(
            "perdure: an object is stored to while its version is made, perhaps by a receive that "
            "is pending across perdure_ipv_persist(); use another buffer or perdure_ipv_pin()\n");
      }
      wait_while(Hold::all);
    }
    lock_.lock();
    const Hold hold = surroundings_.hold.load(std::memory_order_acquire);
    if (!held(hold)) break;
    lock_.unlock();
    wait_while(hold);
  }
  if (waited_ns != 0) {
    counts_.waited_ns.add(waited_ns);
    counts_.first_stores_ns.add(waited_ns);
  }
  if (phase_ != Phase::lost) return;
  if (views_ != nullptr && !views_->leave()) end_without_view();  // P7
  phase_ = Phase::off;
}

void InPlaceObject::plain() {
  lock_for_stores();
  if (phase_ != Phase::off && !ended_) plain_locked();
  lock_.unlock();
}

bool InPlaceObject::fault() {
  if (phase_ == Phase::off) return false;
  lock_for_stores();
  if (!ended_ && (phase_ == Phase::clean || phase_ == Phase::sealed)) {
    counts_.guard_faults.add(1);
    plain_locked();
  }
  lock_.unlock();
  return true;
}

perdure_ipv_object_status InPlaceObject::status() const {
  perdure_ipv_object_status status{};
  status.tier = tier_;
  status.versions = counts_.versions.get();
  status.rows = counts_.rows.get();
  status.fresh_row_bytes = counts_.fresh_row_bytes.get();
  status.copied_bytes = counts_.copied_bytes.get();
  status.flushed_bytes = counts_.flushed_bytes.get();
  status.streamed_bytes = counts_.streamed_bytes.get();
  status.swaps = counts_.swaps.get();
  status.swap_ns = counts_.swap_ns.get();
  status.guard_faults = counts_.guard_faults.get();
  status.persist_ns = counts_.waited_ns.get();
  if (array_ != nullptr) status.pool_bytes = array_->copies() * array_->entry().stride_bytes;
  status.dram_bytes = memory_ == nullptr ? 0 : views_->bytes();
  if (!placed() && memory_ == nullptr) status.dram_bytes = bytes_;
  return status;
}

}  // namespace perdure
