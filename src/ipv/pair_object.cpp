// SPDX-License-Identifier: BSD-3-Clause
#include "ipv/pair_object.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <utility>

#include "base/clock.hpp"
#include "base/this_thread.hpp"

namespace perdure {
namespace {

// A word of each page in the first iterations, which finds a loop that never keeps ipv.R2; then of
// each so many bytes, that an iteration does not notice.
constexpr unsigned thorough_iterations = 8;
constexpr std::uint64_t thorough_words = 4096 / Poison::word_bytes;
constexpr std::uint64_t later_checks = 64;

[[noreturn]] void end_with(const std::string& name, const char* what) {
  constexpr std::size_t most = 1024;
  char text[most];
  std::size_t bytes = 0;
  const auto add = [&](const char* from, std::size_t count) {
    count = std::min(count, most - bytes);
    std::memcpy(text + bytes, from, count);
    bytes += count;
  };
  constexpr char first[] = "perdure: pair '";
  add(first, sizeof first - 1);
  add(name.data(), name.size());
  add(what, std::strlen(what));
  [[maybe_unused]] const auto ignored = ::write(2, text, bytes);
  std::abort();
}

constexpr char refused[] =
    "': a store to the array that holds the version of the last persistence point was stopped. An "
    "iteration overwrites the other array of the pair, and the persistence point comes after each "
    "exchange of the two. Ghost cells are received into the array that was just overwritten, "
    "before "
    "the persistence point. If the loop is otherwise, name two objects instead\n";
constexpr char no_view[] =
    "': the kernel refuses to map another copy (see vm.max_map_count); the last committed version "
    "is whole\n";

[[noreturn]] void end_after_array(const std::string& name, std::uint64_t bytes) {
  constexpr char front[] = "': a store to byte ";
  constexpr char back[] =
      " after the end of the array that holds the version was stopped. The rest of an array's last "
      "page is the pair's: name the pair with all that is used of it, or give what follows it "
      "pages of its own\n";
  char text[sizeof front + sizeof back + 20];
  char* at = std::copy(front, std::end(front) - 1, text);
  at = std::to_chars(at, at + 20, bytes).ptr;
  std::copy(back, std::end(back), at);
  end_with(name, text);
}

Status not_overwritten(const std::string& name, std::uint64_t byte, const char* array) {
  return Status(
      Code::wrong_state, "pair ", quoted(name), ": the iteration did not overwrite byte ", byte,
      " of the ", array,
      " array, or read it before; an earlier one stored there, and each iteration must "
      "(what none stores to must be equal in both arrays). No version is made of it: name "
      "two objects instead");
}

}  // namespace

PairObject::PairObject(ObjectSurroundings& surroundings, std::string name, std::byte* a,
                       std::byte* b, std::uint64_t bytes, std::uint64_t& alive)
    : InPlaceObject(surroundings, std::move(name), a, bytes, PERDURE_IPV_STREAM),
      arrays_{Array{a, nullptr, {}}, Array{b, nullptr, {}}},
      alive_(alive),
      poison_(bytes, surroundings.verify) {}

bool PairObject::overlaps(std::uintptr_t begin, std::uintptr_t end) const {
  return std::ranges::any_of(
      beginnings(), [&](std::uintptr_t first) { return begin < first + bytes_ && first < end; });
}

InPlaceObject::Beginnings PairObject::beginnings() const {
  return {reinterpret_cast<std::uintptr_t>(arrays_[0].address),
          reinterpret_cast<std::uintptr_t>(arrays_[1].address)};
}

Status PairObject::make_views(Array& array) {
  const DeviceFile file = surroundings_.device.file();
  PERDURE_TRY_ASSIGN(auto identity, identify_file(file.path));
  array.views = std::make_unique<AddressViews>(array.address, align_up(bytes_, view_page_bytes),
                                               surroundings_.move_views);
  for (std::uint32_t copy = 0; copy < array_->copies(); ++copy) {
    const FilePages pages{file, identity, array_->copy_offset(copy), array.views->bytes(), true};
    PERDURE_TRY_ASSIGN(const unsigned place, array.views->add_place(pages));
    array.places.push_back(place);
  }
  return Status::success();
}

Status PairObject::start() {
  if (surroundings_.device.file().path.empty() || !array_->has_spare_copy() ||
      array_->copy_offset(0) % view_page_bytes != 0) {
    return Status(
        Code::wrong_state, "pair ", quoted(name_),
        " needs a pool in a file, in which its array was made as a pair (with one copy to "
        "spare); use another name, or a new pool");
  }
  PERDURE_TRY(make_views(arrays_[0]));
  PERDURE_TRY(make_views(arrays_[1]));
  take_contents();
  if (!show(arrays_[alive_], alive_copy_, ViewAccess::read) ||
      !show(arrays_[1 - alive_], written_copy_, ViewAccess::write)) {
    return errno_status("showing the copies of a pair at its addresses", errno);
  }
  started_ = true;
  return Status::success();
}

// ipv.T3.
void PairObject::take_contents() {
  if (alive_ > 1 || !is_restored()) alive_ = 0;
  unsaved_ = !is_restored();
  if (is_restored()) {
    alive_copy_ = array_->consistent_copy();
  } else {
    alive_copy_ = array_->working_copy();
    surroundings_.device.store(array_->copy_offset(alive_copy_), arrays_[0].address, bytes_);
  }
  written_copy_ = free_copy();
  take_rest(arrays_[alive_].address, alive_copy_);
  take_rest(arrays_[1 - alive_].address, written_copy_);
  const auto& named = array_->named();
  for (std::uint32_t copy = 0; copy < array_->copies(); ++copy) {
    if (copy == alive_copy_ || std::ranges::find(named, copy) != named.end()) continue;
    surroundings_.device.store(array_->copy_offset(copy), at(alive_copy_), bytes_);
  }
}

// ipv.T2: neither a version's nor the program's.
std::uint32_t PairObject::free_copy() const {
  const auto& named = array_->named();
  for (std::uint32_t copy = 0; copy < array_->copies(); ++copy) {
    const bool taken = std::ranges::find(named, copy) != named.end();
    if (!taken && copy != alive_copy_ && copy != array_->consistent_copy()) return copy;
  }
  PERDURE_ASSERT(false);  // has_spare_copy()
  return 0;
}

// The device does not hear of it: it may end before its last page does.
void PairObject::take_rest(const std::byte* from, std::uint32_t copy) {
  std::memcpy(surroundings_.device.base() + array_->copy_offset(copy) + bytes_, from + bytes_,
              align_up(bytes_, view_page_bytes) - bytes_);
}

bool PairObject::show(Array& array, std::uint32_t copy, ViewAccess access) {
  const std::uint64_t start_ns = monotonic_ns();
  const bool shown = array.views->show(array.places[copy], access);
  counts_.swap_ns.add(monotonic_ns() - start_ns);
  return shown;
}

void PairObject::leave() {
  if (!std::exchange(started_, false)) return;
  for (Array& array : arrays_) {
    if (array.views != nullptr && !array.views->leave()) end_with(name_, no_view);
    array.views.reset();
  }
}

// What the last persistence point began, or a version before it, is what stays.
Status PairObject::end(Going how) {
  leave();
  ended_ = true;
  moved_ = how == Going::moved;
  return Status::success();
}

// ipv.T4. Its arrays show the extent that it leaves until they are ordinary memory.
Status PairObject::resize(const ObjectMemory& to, const ResizeInPool& in_pool) {
  if (in_version_ && flush_ != Flush::done) PERDURE_TRY(flush_saved());
  [[maybe_unused]] const auto left = array_->entry().hold;
  Poison poison(to.bytes, surroundings_.verify);
  PERDURE_TRY(in_pool(true));
  leave();
  take_place([&] {
    address_ = to.address;
    bytes_ = to.bytes;
    arrays_[0].address = to.address;
    arrays_[1].address = to.other;
  });
  for (Array& array : arrays_) array.places.clear();
  poison_ = std::move(poison);
  alive_ = 0;
  anew_ = in_version_;
  Status started = start();
  if (!started.ok()) ended_ = moved_ = true;  // there is no version of what is in no copy
  return started;
}

bool PairObject::fault(std::uintptr_t address) {
  if (!started_) return false;
  const auto alive_first = reinterpret_cast<std::uintptr_t>(arrays_[alive_].address);
  const std::uintptr_t offset = address - alive_first;
  if (offset < bytes_) end_with(name_, refused);
  if (offset < align_up(bytes_, view_page_bytes)) end_after_array(name_, offset - bytes_);
  return true;  // it came while the roles were exchanged
}

Status PairObject::pin() {
  return Status(Code::wrong_state, "pair ", quoted(name_),
                " can't be pinned: the pages of its arrays move. Name two objects instead");
}

Status PairObject::unpin() {
  return Status(Code::wrong_state, "pair ", quoted(name_), " is not pinned");
}

Status PairObject::check_overwritten() {
  if (!broken_.ok()) return broken_;
  const auto found = poison_.found(at(written_copy_));
  if (found) broken_ = not_overwritten(name_, *found, alive_ == 0 ? "second" : "first");
  return broken_;
}

// ipv.T1 and ipv.T2.
void PairObject::swap_roles() {
  const std::byte* const alive_before = at(alive_copy_);
  alive_copy_ = written_copy_;
  alive_ = 1 - alive_;
  written_copy_ = free_copy();
  take_rest(alive_before, written_copy_);
  counts_.swaps.add(1);
  if (!show(arrays_[alive_], alive_copy_, ViewAccess::read)) end_with(name_, no_view);
  const std::uint64_t words = bytes_ / Poison::word_bytes;
  const bool thorough = counts_.swaps.get() <= thorough_iterations;
  const std::uint64_t stride =
      thorough ? thorough_words : std::max(thorough_words, words / later_checks);
  poison_.lay(at(written_copy_), at(alive_copy_), stride);
  if (!show(arrays_[1 - alive_], written_copy_, ViewAccess::write)) end_with(name_, no_view);
}

Status PairObject::hand_over() {
  in_version_ = started_ || (ended_ && unsaved_);
  unsaved_ = unsaved_ || started_;
  if (in_version_) {
    array_->work_on(started_ ? written_copy_ : alive_copy_);
    flush_ = Flush::needed;
  }
  if (!started_) return Status::success();
  const std::uint64_t start_ns = monotonic_ns();
  const Status overwritten = check_overwritten();
  swap_roles();
  counts_.waited_ns.add(monotonic_ns() - start_ns);
  return overwritten;
}

// The loop goes on, whether a version was begun or not.
void PairObject::pass() {
  if (!started_) return;
  (void)check_overwritten();  // the next version tells
  unsaved_ = true;
  swap_roles();
}

Result<std::uint64_t> PairObject::save_contents() {
  if (surroundings_.saves_beside) return bytes();  // save_beside() is queued
  PERDURE_TRY(flush_saved());
  return bytes();
}

Status PairObject::flush_saved() {
  const std::uint64_t start_ns = monotonic_ns();
  PERDURE_TRY(surroundings_.writer.flush(array_->copy_offset(alive_copy_), bytes_));
  flush_ = Flush::done;
  counts_.flushed_bytes.add(bytes_);
  counts_.waited_ns.add(monotonic_ns() - start_ns);
  return Status::success();
}

bool PairObject::is_saved_beside() {
  Flush needed = Flush::needed;
  return in_version_ && flush_.compare_exchange_strong(needed, Flush::queued);
}

// If it fails, finish_save() tries again.
void PairObject::save_beside() {
  Device& device = surroundings_.device;
  if (!surroundings_.writer.flush(array_->copy_offset(alive_copy_), bytes_).ok()) return;
  if (!device.fence().ok()) return;  // D4
  counts_.flushed_bytes.add(bytes_);
  flush_ = Flush::done;
}

// What the helper could not do.
Status PairObject::finish_save() {
  return in_version_ && flush_ != Flush::done ? flush_saved() : Status::success();
}

void PairObject::end_version(CommitOutcome outcome) {
  const bool was_in_version = std::exchange(in_version_, false);
  flush_ = Flush::done;
  const bool anew = std::exchange(anew_, false);
  if (!was_in_version || outcome != CommitOutcome::committed) return;
  unsaved_ = anew;
  counts_.versions.add(1);
}

}  // namespace perdure
