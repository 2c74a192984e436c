// SPDX-License-Identifier: BSD-3-Clause
#include "pool/versioned_array.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/checksum.hpp"
#include "pmem/flush.hpp"
#include "pool/buffer_memory.hpp"
#include "pool/device_buffer.hpp"

namespace perdure {
namespace {

// Where an array without elements lies that has no buffer on its device.
std::byte nothing_on_device;

}  // namespace

VersionedArray::VersionedArray(Device& device, ParallelWriter& writer, const ArrayEntry& entry,
                               const Geometry& geometry, const ArrayOptions& options)
    : device_(device),
      writer_(writer),
      entry_(entry),
      block_bytes_(geometry.block_bytes),
      page_bytes_(geometry.block_bytes),
      buffer_(static_cast<std::byte*>(options.buffer)),
      accelerators_(options.accelerators),
      marks_(options.marks),
      asked_to_compare_(options.compare),
      resizable_(options.of_program && !options.staged),
      tracker_kind_(options.tracker),
      keep_contents_(options.keep_contents && options.buffer != nullptr),
      twin_writer_(options.writer),
      named_(geometry.slots, no_copy) {
  choose_finding(entry_.size_bytes);
}

VersionedArray::~VersionedArray() {
  tracker_.reset();  // before the memory
}

// log: how changes are found in an array of that size.
void VersionedArray::choose_finding(std::uint64_t size_bytes) {
  if (mode() != ArrayMode::log || marks_ || device_buffer_) return;
  tracked_ = !asked_to_compare_ && PageTracker::is_worth_it(size_bytes, tracker_kind_);
  compare_ = !tracked_;
}

// Of contents that are in no copy yet.
void VersionedArray::make_tables() {
  const bool may_be_pages =
      mode() == ArrayMode::log && !entry_.shape.checksums && has_pages(block_bytes_);
  page_bytes_ = sums_pages() || may_be_pages ? block_bytes_ / pages_per_block : block_bytes_;
  const PageSet pages(entry_.size_bytes, page_bytes_);
  if (entry_.shape.checksums) {
    tables_.assign(entry_.copies, std::vector<std::uint64_t>(blocks()));
  }
  page_sums_.assign(sums_pages() ? entry_.copies : 0, std::vector<std::uint64_t>(pages.pages()));
  if (mode() != ArrayMode::log) return;
  changed_ = pages;
  if (marks_) marked_ = pages;
  stale_.assign(entry_.copies, pages);
  for (PageSet& stale : stale_) stale.add_all();
}

Result<std::unique_ptr<VersionedArray>> VersionedArray::create(Device& device,
                                                               ParallelWriter& writer,
                                                               const ArrayEntry& entry,
                                                               const Geometry& geometry,
                                                               const ArrayOptions& options) {
  std::unique_ptr<VersionedArray> array(
      new VersionedArray(device, writer, entry, geometry, options));
  PERDURE_TRY(array->check_options(options));
  PERDURE_TRY(array->allocate_buffers(options));
  array->make_tables();
  array->choose_working();
  return array;
}

Status VersionedArray::check_options(const ArrayOptions& options) const {
  const auto invalid = [this](const char* what) {
    return Status(Code::invalid_argument, "array ", quoted(name()), ": ", what);
  };
  const bool log = mode() == ArrayMode::log;
  if ((marks_ || asked_to_compare_) && !log) return invalid("marks and compare are for log mode");
  if (marks_ && asked_to_compare_)
    return invalid("marks contradict compare: changes are found either way");
  if (buffer_ != nullptr && mode() != ArrayMode::copy && !log) {
    return invalid("an array in twin or flush mode lives in the pool and takes no buffer");
  }
  if (twin_writer_ != nullptr && (mode() != ArrayMode::twin || entry_.shape.checksums)) {
    return invalid("only a twin array without checksums can have a writer");
  }
  if (options.staged && mode() != ArrayMode::copy && !(log && asked_to_compare_)) {
    return invalid("only copy mode, and log mode with compare, can be staged");
  }
  return Status::success();
}

Status VersionedArray::make_checked_copies() {
  PERDURE_TRY_ASSIGN(checked_, CheckedCopies::create(device_, entry_));
  return Status::success();
}

Status VersionedArray::take_entry(const ArrayEntry& entry) {
  const bool moves = !entry.same_places(entry_);
  const bool resizes = entry.shape != entry_.shape || entry.checksum != entry_.checksum;
  entry_ = entry;
  if (resizes) PERDURE_TRY(fit());
  if (moves && !resizes && device_buffer_) {
    PERDURE_TRY(named(device_buffer_->fit(entry_, buffer_)));
  }
  return checked_ && (moves || resizes) ? make_checked_copies() : Status::success();
}

Status VersionedArray::allocate_buffers(const ArrayOptions& options) {
  if (mode() == ArrayMode::twin && options.of_program) {
    PERDURE_TRY_ASSIGN(const bool checked, checks_stores());
    if (checked) PERDURE_TRY(make_checked_copies());
  }
  if (mode() == ArrayMode::twin || mode() == ArrayMode::flush) return Status::success();
  if (options.staged) {
    PERDURE_TRY_ASSIGN(staging_, ArrayBuffer::make(entry_.size_bytes, tracked_));
  }
  if (options.device != nullptr) {
    if (buffer_ == nullptr && entry_.size_bytes == 0) buffer_ = &nothing_on_device;
    PERDURE_TRY(take_device_buffer(*accelerators_->by(*options.device), buffer_));
  } else if (buffer_ != nullptr) {
    PERDURE_TRY(check_buffer(buffer_, entry_.size_bytes));
  }
  if (buffer_ == nullptr) {
    PERDURE_TRY_ASSIGN(owned_, ArrayBuffer::make(entry_.size_bytes, tracked_));
    buffer_ = owned_.at();
  }
  source_ = buffer_;
  return watch_other(buffer_, entry_.size_bytes);
}

// The tracker, if there is one, is that of this memory.
Status VersionedArray::watch_other(std::byte* at, std::uint64_t size_bytes) {
  tracker_.reset();
  if (!tracked_ || size_bytes == 0) return Status::success();
  auto made = PageTracker::create(at, size_bytes, tracker_kind_);
  if (!made.ok()) return named(made.status());
  tracker_ = made.take();
  return Status::success();
}

// Where others store to the buffer, no tracker sees it; and one needs whole pages, which malloc()
// and std::vector seldom give.
Status VersionedArray::check_buffer(std::byte* buffer, std::uint64_t size_bytes) {
  if (accelerators_ != nullptr) {
    const auto accelerator = accelerators_->of(buffer, size_bytes);
    if (!accelerator.ok()) return named(accelerator.status());
    if (accelerator.value() != nullptr) return take_device_buffer(*accelerator.value(), buffer);
  }
  reach_bytes_ = 0;
  const auto stores = check_buffer_memory(buffer, size_bytes, &reach_bytes_);
  if (!stores.ok()) return named(stores.status());
  const bool can_be_tracked =
      stores.value() == Stores::by_this_mapping && PageTracker::can_watch(buffer);
  if (!tracked_ || can_be_tracked) return Status::success();
  tracked_ = false;
  compare_ = true;
  return Status::success();
}

// From the opening on.
Status VersionedArray::take_device_buffer(Accelerator& accelerator, std::byte* buffer) {
  const auto refused = [this](const char* what) {
    return Status(Code::unsupported, "array ", quoted(name()), ": ", what);
  };
  if (started_) {
    return refused(
        "its buffer was in the host's memory and can't become one of a GPU: remove the "
        "array and open it anew");
  }
  if (mode() == ArrayMode::log && (marks_ || asked_to_compare_ || !entry_.shape.checksums)) {
    return refused(
        "in memory of a GPU, log mode finds what changed by the checksums of pages: "
        "leave PERDURE_MARKS, PERDURE_COMPARE and PERDURE_NO_CHECKSUM out");
  }
  tracked_ = compare_ = false;
  auto made = DeviceBuffer::open({device_, writer_, *accelerators_, block_bytes_}, accelerator,
                                 entry_, buffer);
  if (!made.ok()) return named(made.status());
  device_buffer_ = made.take();
  return Status::success();
}

// What happens to the memory later says nothing of the buffer.
void VersionedArray::lose_buffer(const char* how) {
  const char* none = nullptr;
  if (!lost_.compare_exchange_strong(none, how)) return;
  if (tracker_) tracker_->stop(true);
}

void VersionedArray::move_buffer() {
  if (tracker_) tracker_->expose();
}

void VersionedArray::end_move_of_buffer(bool kept) {
  if (kept) return;
  lost_ = "moved by realloc()";
  if (tracker_) tracker_->stop(false);
}

Status VersionedArray::check_buffer_here() const {
  if (given_buffer() == nullptr) return Status::success();
  const char* const how = lost_;
  const bool in_host = device_buffer_ == nullptr;
  if (in_host && how == nullptr && is_mapped(buffer_, entry_.size_bytes)) return Status::success();
  if (!in_host && how == nullptr && device_buffer_->is_here()) return Status::success();
  return Status(Code::wrong_state, "array ", quoted(name()), ": its buffer of ", entry_.size_bytes,
                " bytes was ",
                how != nullptr   ? how
                : device_buffer_ ? "freed"
                                 : "unmapped",
                " by the program, so there is nothing to commit: a buffer stays where it is until "
                "the pool is closed. Close the pool, whose last version is whole, and open it anew "
                "with the buffer that there is now");
}

Status VersionedArray::named(const Status& status) const {
  if (status.ok()) return status;
  return Status(status.code(), "array ", quoted(name()), ": ", status.message());
}

std::uint64_t VersionedArray::blocks() const {
  return block_count(entry_.size_bytes, block_bytes_);
}

// A set of copies, as bits.
std::uint64_t VersionedArray::named_copies() const {
  std::uint64_t set = 0;
  for (const std::uint8_t copy : named_) {
    if (copy != no_copy) set |= std::uint64_t{1} << copy;
  }
  return set;
}

// There is a free copy: the slot of the next version names none, so at most copies - 1 are named;
// and if the head does not name the array, at most copies - 2, and entry_.copy is one more.
void VersionedArray::choose_working() {
  if (mode() == ArrayMode::flush) return;
  const std::uint64_t taken = named_copies() | (std::uint64_t{1} << entry_.copy);
  if (twin_writer_ != nullptr && started_ && (taken >> working_copy_ & 1) == 0) return;
  working_copy_ = static_cast<std::uint32_t>(std::countr_one(taken));
  PERDURE_ASSERT(working_copy_ < entry_.copies);
  if (checked_) checked_->allow_only(working_copy_);
}

void VersionedArray::work_on(std::uint32_t copy) {
  PERDURE_ASSERT(twin_writer_ != nullptr && saved_copy_ == no_copy);
  PERDURE_ASSERT((named_copies() >> copy & 1) == 0);
  working_copy_ = copy;
}

bool VersionedArray::move_on() {
  PERDURE_ASSERT(twin_writer_ != nullptr && saved_copy_ == no_copy);
  const std::uint64_t taken =
      named_copies() | (std::uint64_t{1} << entry_.copy) | (std::uint64_t{1} << working_copy_);
  const auto free = static_cast<std::uint32_t>(std::countr_one(taken));
  if (free >= entry_.copies) return false;
  saved_copy_ = std::exchange(working_copy_, free);
  return true;
}

std::byte* VersionedArray::working() {
  return buffer_ != nullptr ? buffer_ : seen_address(working_copy_);
}

const std::byte* VersionedArray::consistent() const {
  return buffer_ != nullptr ? buffer_ : seen_address(entry_.copy);
}

// No version of now names the array.
Status VersionedArray::begin_empty(const ArrayEntry& entry) {
  PERDURE_TRY(check_buffer_here());
  PERDURE_TRY(take_entry(entry));
  committed_ = false;
  if (mode() != ArrayMode::flush) {
    entry_.copy = static_cast<std::uint32_t>(std::countr_one(named_copies()));
    PERDURE_ASSERT(entry_.copy < entry_.copies);
  }
  choose_working();
  for (PageSet& stale : stale_) stale.add_all();
  return Status::success();
}

Status VersionedArray::start_empty(const ArrayEntry& entry) {
  PERDURE_TRY(begin_empty(entry));
  const std::uint64_t in_use = named_copies();
  const bool restarted = started_;
  const bool keeps = mode() == ArrayMode::flush && restarted;
  started_ = true;
  if (buffer_ != nullptr && keep_contents_ && !restarted) {
    // As the application has filled it.
  } else if (device_buffer_) {
    PERDURE_TRY(named(device_buffer_->clear()));
  } else if (buffer_ != nullptr) {
    std::memset(buffer_, 0, entry_.size_bytes);
  } else if (!keeps && twin_writer_ == nullptr) {
    for (std::uint32_t copy = 0; copy < entry_.copies; ++copy) {
      if ((in_use >> copy & 1) == 0) std::memset(copy_address(copy), 0, entry_.size_bytes);
    }
  }
  wake();
  return watch();
}

Status VersionedArray::start_filled(const ArrayEntry& entry,
                                    const std::function<Status(VersionedArray&)>& fill) {
  PERDURE_TRY(begin_empty(entry));
  started_ = true;
  PERDURE_TRY(fill(*this));
  if (marks_) PERDURE_TRY(mark(0, entry_.size_bytes));
  wake();
  return watch();  // what it held before is no change of the program's
}

void VersionedArray::store_first(std::uint64_t first_byte, std::span<const std::byte> bytes) {
  if (buffer_ != nullptr) {
    std::memcpy(buffer_ + first_byte, bytes.data(), bytes.size());
  } else if (!bytes.empty()) {
    device_.copy(entry_.copy_offset(working_copy_) + first_byte, bytes.data(), bytes.size());
  }
}

void VersionedArray::clear_first() {
  std::byte* const at = buffer_ != nullptr ? buffer_ : copy_address(working_copy_);
  if (entry_.size_bytes != 0) std::memset(at, 0, entry_.size_bytes);
}

void VersionedArray::show_first() {
  if (mode() != ArrayMode::twin) return;
  entry_.copy = working_copy_;
  choose_working();
}

Status VersionedArray::start_restored(const ArrayEntry& entry) {
  PERDURE_TRY(check_buffer_here());
  PERDURE_TRY(take_entry(entry));
  started_ = committed_ = true;
  streamed_begin_ = streamed_end_ = 0;
  choose_working();
  auto* table = entry_.shape.checksums ? &tables_[entry_.copy] : nullptr;
  auto* of_pages = sums_pages() ? &page_sums_[entry_.copy] : nullptr;
  if (device_buffer_) {
    const Status loaded = device_buffer_->load(entry_, sums_of(entry_.copy));
    if (!loaded.ok()) return loaded.code() == Code::damaged ? loaded : named(loaded);
  } else if (mode() != ArrayMode::flush) {
    PERDURE_TRY(verify_and_copy(device_, entry_, block_bytes_, buffer_, table, of_pages));
  }
  if (mode() != ArrayMode::log) return Status::success();
  changed_.clear();
  marked_.clear();
  idle_ = marks_;
  for (PageSet& stale : stale_) stale.add_all();
  stale_[entry_.copy].clear();
  return watch();
}

Status VersionedArray::check_resizable(const ArrayShape& shape) const {
  if (!resizable_ || twin_writer_ != nullptr || mode() == ArrayMode::flush) {
    return Status(Code::unsupported, "array ", quoted(name()), " keeps its size: ",
                  (mode() == ArrayMode::flush ? "in flush mode it has no versions"
                                              : "it is a window's, or of in-place versioning"));
  }
  const ArrayShape& mine = entry_.shape;
  if (shape.type == mine.type && shape.mode == mine.mode && shape.checksums == mine.checksums &&
      shape.extents.size() == mine.extents.size()) {
    return Status::success();
  }
  return Status(Code::shape_mismatch, "array ", quoted(name()), " is ", mine.text(), ", not ",
                shape.text(), ": its extents may change, and nothing else");
}

// Memory, tables and tracker for the entry that it has taken. The contents come next.
Status VersionedArray::fit() {
  if (device_buffer_) {
    PERDURE_TRY(named(device_buffer_->fit(entry_, buffer_)));
  } else if (buffer_ != nullptr) {
    choose_finding(entry_.size_bytes);
    if (given_buffer() != nullptr) PERDURE_TRY(check_buffer(buffer_, entry_.size_bytes));
    if (given_buffer() == nullptr && !owned_.fits(entry_.size_bytes, tracked_)) {
      PERDURE_TRY_ASSIGN(auto made, ArrayBuffer::make(entry_.stride_bytes, tracked_));
      tracker_.reset();
      owned_ = std::move(made);
      source_ = buffer_ = owned_.at();
    }
    PERDURE_TRY(watch_other(buffer_, entry_.size_bytes));
  }
  make_tables();
  return Status::success();
}

// The buffer, with the contents, is memory of the same GPU.
Status VersionedArray::resize_device_buffer(std::byte* given, const ArrayEntry& entry) {
  const DeviceFunctions* const functions = device_buffer_->accelerator().functions();
  if (functions != nullptr && given == nullptr && entry.size_bytes == 0) given = &nothing_on_device;
  const auto accelerator = functions == nullptr || given == nullptr
                               ? accelerators_->of(given, entry.size_bytes)
                               : Result<Accelerator*>(accelerators_->by(*functions));
  if (!accelerator.ok()) return named(accelerator.status());
  if (accelerator.value() != &device_buffer_->accelerator()) {
    return Status(Code::unsupported, "array ", quoted(name()),
                  " is in memory of a GPU and stays on it: say where it is there now");
  }
  const bool was_here = check_buffer_here().ok();
  Status fits = named(device_buffer_->fit(entry, given));
  if (!fits.ok()) {
    (void)device_buffer_->fit(entry_, buffer_);
    if (!was_here) lose_buffer("freed");
    return fits;
  }
  source_ = buffer_ = given;
  lost_ = nullptr;
  return Status::success();
}

// copy and log. `other_contents`: no copy is known to have any of them.
Status VersionedArray::resize_buffer(std::byte* given, const ArrayEntry& entry,
                                     bool& other_contents) {
  const std::uint64_t size = entry.size_bytes;
  const std::uint64_t before = entry_.size_bytes;
  if (given == nullptr && size != 0) {
    if (Status here = check_buffer_here(); !here.ok()) {
      return Status(Code::invalid_argument, "array ", quoted(name()),
                    " had a buffer of the program, which is gone: say where it lies now");
    }
  }
  const auto as_before = [this, tracked = tracked_, compare = compare_](const Status& status) {
    tracked_ = tracked;
    compare_ = compare;
    return status;
  };
  const bool compared = compare_;
  choose_finding(size);
  const bool stays = given != nullptr && given == buffer_ && !owned_.is_there();
  // A vector that grows within its capacity does so in most steps: the kernel was asked already.
  const bool reaches = mode() == ArrayMode::copy && lost_ == nullptr && size <= reach_bytes_;
  if (stays && (size <= before || reaches)) {
    tracked_ = tracked_ && !compared;  // as it was found to be
    compare_ = compare_ || compared;
  } else if (given != nullptr) {
    if (Status fits = check_buffer(given, size); !fits.ok()) return as_before(fits);
  }
  ArrayBuffer made;
  if (given == nullptr && !owned_.fits(size, tracked_)) {
    auto memory = ArrayBuffer::make(entry.stride_bytes, tracked_);
    if (!memory.ok()) return as_before(memory.status());
    made = memory.take();
    if (size != 0 && before != 0) std::memcpy(made.at(), buffer_, std::min(before, size));
  }
  std::byte* const at = given != nullptr ? given : made.is_there() ? made.at() : owned_.at();
  other_contents = at != buffer_ && !made.is_there();
  if (tracker_ && !other_contents) other_contents = !tracker_->collect(changed_).ok();
  if (Status watched = watch_other(at, size); !watched.ok()) {
    changed_.add_all();
    (void)as_before(watched);
    if (!watch_other(buffer_, before).ok() || !watch().ok()) compare_ = true;
    return watched;
  }
  if (given == nullptr && !made.is_there() && size > before) {
    std::memset(owned_.at() + before, 0, size - before);
  }
  if (given != nullptr || made.is_there()) owned_ = std::move(made);
  source_ = buffer_ = at;
  lost_ = nullptr;
  return Status::success();
}

// twin: what a copy holds from now on.
void VersionedArray::keep_copy(const std::byte* from, std::uint64_t bytes, std::uint32_t copy) {
  std::byte* const to = copy_address(copy);
  const std::uint64_t kept = std::min(bytes, entry_.size_bytes);
  if (to != from && kept != 0) std::memcpy(to, from, kept);
  std::memset(to + kept, 0, entry_.size_bytes - kept);
}

void VersionedArray::take_size(const ArrayEntry& entry, bool other_contents) {
  const ArrayEntry from = std::exchange(entry_, entry);
  const bool moves = from.first_offset != entry_.first_offset;
  const std::uint32_t worked_on = working_copy_;
  if (moves) {
    entry_.copy = 0;
    committed_ = false;
    std::ranges::fill(named_, static_cast<std::uint8_t>(no_copy));
    make_tables();
    choose_working();
  } else {
    entry_.copy = from.copy;
    entry_.table_checksum = from.table_checksum;
    for (auto& table : tables_) table.resize(blocks());
    for (auto& sums : page_sums_) sums.resize(block_count(entry_.size_bytes, page_bytes_));
    if (mode() == ArrayMode::log) {
      changed_.resize(entry_.size_bytes);
      if (marks_) marked_.resize(entry_.size_bytes);
      // The last page that stays is another part of its block's checksum.
      const std::uint64_t same =
          std::max<std::uint64_t>(std::min(from.size_bytes, entry_.size_bytes), 1) - 1;
      for (PageSet& stale : stale_) {
        stale.resize(entry_.size_bytes);
        stale.add_pages({other_contents ? 0 : same / page_bytes_, stale.pages()});
      }
    }
  }
  resized_ = moves ? Resized::moved : Resized::in_place;
  streamed_begin_ = streamed_end_ = 0;
  if (mode() != ArrayMode::twin) return;
  const std::byte* const base = device_.base();
  keep_copy(base + from.copy_offset(from.copy), from.size_bytes, entry_.copy);
  keep_copy(base + from.copy_offset(worked_on), from.size_bytes, working_copy_);
}

Status VersionedArray::resize(const ArrayEntry& entry, void* buffer) {
  bool other_contents = false;
  std::unique_ptr<CheckedCopies> checked;
  if (mode() == ArrayMode::twin) {
    if (buffer != nullptr) {
      return Status(Code::invalid_argument, "array ", quoted(name()),
                    ": in twin mode it lives in the pool and takes no buffer");
    }
    if (checked_) {
      PERDURE_TRY_ASSIGN(checked, CheckedCopies::create(device_, entry));
    }
  } else if (device_buffer_) {
    other_contents = true;
    PERDURE_TRY(resize_device_buffer(static_cast<std::byte*>(buffer), entry));
  } else {
    PERDURE_TRY(resize_buffer(static_cast<std::byte*>(buffer), entry, other_contents));
  }
  if (checked_) checked_ = std::move(checked);
  take_size(entry, other_contents);
  if (checked_) checked_->allow_only(working_copy_);
  wake();
  if (!watch().ok()) compare_ = true;  // as if it were not tracked
  return Status::success();
}

Status VersionedArray::watch() {
  if (!tracker_) return Status::success();
  PERDURE_TRY(named(tracker_->watch()));
  unseen_ = stores_may_go_unseen();
  return Status::success();
}

void VersionedArray::wake() {
  if (!idle_) return;
  idle_ = false;
  if (woken_ != nullptr) woken_->emplace(number_, this);
}

void VersionedArray::report_to(Woken& list, std::uint64_t number) {
  woken_ = &list;
  number_ = number;
  if (marks_ && !idle_) list.emplace(number, this);
}

Status VersionedArray::mark(std::uint64_t first_byte, std::uint64_t count_bytes) {
  if (!marks_) {
    return {Code::wrong_state, "array " + quoted(name()) + " was not opened with PERDURE_MARKS"};
  }
  if (count_bytes == 0) return Status::success();
  marked_.add(ByteRange{first_byte, first_byte + count_bytes});
  wake();
  return Status::success();
}

Status VersionedArray::write(std::uint64_t first_byte, std::uint64_t count_bytes,
                             const void* source) {
  if (mode() != ArrayMode::twin) {
    return Status(Code::wrong_state, "perdure_write is for twin arrays; ", quoted(name()),
                  " is in ", mode_name(mode()), " mode");
  }
  device_.copy(entry_.copy_offset(working_copy_) + first_byte, source, count_bytes);
  // One range is remembered: rows that follow each other make it grow. Others are flushed again by
  // save(), which costs time and nothing else.
  if (first_byte == streamed_end_) {
    streamed_end_ += count_bytes;
  } else if (count_bytes > streamed_end_ - streamed_begin_) {
    streamed_begin_ = first_byte;
    streamed_end_ = first_byte + count_bytes;
  }
  return Status::success();
}

Status VersionedArray::collect_changes() {
  PERDURE_TRY(check_buffer_here());
  source_ = buffer_;
  saved_from_device_.reset();
  if (device_buffer_) {
    PERDURE_TRY(named(device_buffer_->take(working_copy_)));
    if (!device_buffer_->must_be_saved_at_once()) return Status::success();
    PERDURE_TRY_ASSIGN(saved_from_device_, save_from_device());
    return Status::success();
  }
  if (marks_) {
    changed_.add(marked_);
    marked_.clear();
  }
  if (!tracker_) return Status::success();
  compare_now_ = compare_now_ || unseen_;
  unseen_ = true;  // note_unseen() may know better
  return named(tracker_->collect(changed_));
}

void VersionedArray::stage() {
  PERDURE_ASSERT(staging_.is_there());
  std::memcpy(staging_.at(), buffer_, entry_.size_bytes);
  source_ = staging_.at();
}

Result<std::uint64_t> VersionedArray::save() {
  if (device_buffer_) return save_from_device();
  switch (mode()) {
    case ArrayMode::copy:
      return save_copy();
    case ArrayMode::twin:
    case ArrayMode::flush:
      return save_twin();
    case ArrayMode::log:
      return save_log();
  }
  return Status(Code::invalid_argument, "unknown mode");
}

bool VersionedArray::lacks_snapshot() const {
  return on_device() && device_buffer_->lacks_snapshot();
}

bool VersionedArray::is_by_functions() const {
  return on_device() && device_buffer_->accelerator().functions() != nullptr;
}

Status VersionedArray::wait_until_free() {
  return named(device_buffer_->wait_until_free());
}

Status VersionedArray::hold_stream() {
  return named(device_buffer_->hold_stream());
}

CopySums VersionedArray::sums_of(std::uint32_t copy) {
  return {tables_.empty() ? no_sums_ : tables_[copy], sums_pages() ? &page_sums_[copy] : nullptr};
}

Result<std::uint64_t> VersionedArray::save_from_device() {
  if (saved_from_device_) return *std::exchange(saved_from_device_, std::nullopt);
  auto saved = device_buffer_->save(
      working_copy_, sums_of(working_copy_),
      [this](PageRun run, const std::byte* from) { return save_pages(run, from); });
  if (!saved.ok()) return named(saved.status());
  store_table();
  return saved;
}

// They are in the host's memory from `from` on.
Status VersionedArray::save_pages(PageRun run, const std::byte* from) {
  if (run.empty()) return Status::success();
  const std::uint64_t begin = run.first * page_bytes_;
  const std::uint64_t end = std::min(run.end * page_bytes_, entry_.size_bytes);
  const std::uint64_t offset = entry_.copy_offset(working_copy_) + begin;
  if (!entry_.shape.checksums) return writer_.copy(offset, from, end - begin);
  auto& sums = sums_pages() ? page_sums_[working_copy_] : tables_[working_copy_];
  PERDURE_TRY(writer_.copy_with_checksums(
      offset, from, end - begin,
      {of_one_page(entry_.checksum), page_bytes_, sums.data() + run.first}));
  if (sums_pages()) sum_blocks_of(run);
  return Status::success();
}

// pool.A3.
void VersionedArray::sum_blocks_of(PageRun run) {
  const std::vector<std::uint64_t>& of_pages = page_sums_[working_copy_];
  for (std::uint64_t block = run.first / pages_per_block; block * pages_per_block < run.end;
       ++block) {
    const std::uint64_t first = block * pages_per_block;
    const std::uint64_t count = std::min(pages_per_block, of_pages.size() - first);
    tables_[working_copy_][block] = sum_of_pages(entry_.checksum, {of_pages.data() + first, count});
  }
}

Result<std::uint64_t> VersionedArray::save_copy() {
  PERDURE_TRY(save_pages({0, block_count(entry_.size_bytes, page_bytes_)}, source_));
  store_table();
  return entry_.size_bytes;
}

// A copy that was never committed holds nothing that a version could name.
bool VersionedArray::unchanged() const {
  return twin_writer_ != nullptr && committed_ && !twin_writer_->changed();
}

// Flush mode as well: its one copy is the working one.
Result<std::uint64_t> VersionedArray::save_twin() {
  if (unchanged()) return std::uint64_t{0};
  if (twin_writer_ != nullptr) return twin_writer_->save();
  const std::uint64_t offset = entry_.copy_offset(working_copy_);
  if (streamed_begin_ > 0) PERDURE_TRY(writer_.flush(offset, streamed_begin_));
  if (streamed_end_ < entry_.size_bytes) {
    PERDURE_TRY(writer_.flush(offset + streamed_end_, entry_.size_bytes - streamed_end_));
  }
  if (entry_.shape.checksums) {
    checksum_working_copy();
    store_table();
  }
  return entry_.size_bytes - (streamed_end_ - streamed_begin_);
}

// pool.A3. What was not committed is stale in all copies.
void VersionedArray::find_differences() {
  const std::byte* committed = copy_address(entry_.copy);
  for (std::uint64_t page = 0; page < changed_.pages() && committed_; ++page) {
    if (changed_.has(page)) continue;
    const std::uint64_t begin = page * page_bytes_;
    const std::uint64_t count = bytes_at(begin, page_bytes_);
    if (std::memcmp(source_ + begin, committed + begin, count) == 0) continue;
    changed_.add_pages({page, page + 1});
  }
}

// What is copied stays stale until the version is there: if it is retracted, none of it need be
// durable.
Result<std::uint64_t> VersionedArray::save_log() {
  if (compare_ || std::exchange(compare_now_, false)) find_differences();
  PageSet& lacking = stale_[working_copy_];
  lacking.add(changed_);
  std::uint64_t saved_bytes = 0;
  for (PageRun run = lacking.next_run(0); !run.empty(); run = lacking.next_run(run.end)) {
    const std::uint64_t begin = run.first * page_bytes_;
    PERDURE_TRY(save_pages(run, source_ + begin));
    saved_bytes += bytes_at(begin, (run.end - run.first) * page_bytes_);
  }
  store_table();
  return saved_bytes;
}

void VersionedArray::checksum_working_copy() {
  const std::byte* from = copy_address(working_copy_);
  for (std::uint64_t block = 0; block < blocks(); ++block) {
    tables_[working_copy_][block] =
        block_checksum(entry_.checksum, block_bytes_, from + block * block_bytes_,
                       bytes_at(block * block_bytes_, block_bytes_));
  }
}

void VersionedArray::store_table() {
  if (!entry_.shape.checksums) return;
  const std::vector<std::uint64_t>& table = tables_[working_copy_];
  device_.copy(entry_.table_offset(working_copy_), table.data(), 8 * table.size());
}

// The copy that the next version names.
std::uint32_t VersionedArray::copy_of_next() const {
  const std::uint32_t saved = saved_copy_ == no_copy ? working_copy_ : saved_copy_;
  return unchanged() ? entry_.copy : saved;
}

std::uint64_t VersionedArray::checksum_of_next() const {
  if (!entry_.shape.checksums) return entry_.table_checksum;
  const std::vector<std::uint64_t>& table = tables_[working_copy_];
  return crc64(table.data(), 8 * table.size());
}

void VersionedArray::commit(const LeafEntry& named) {
  const Resized resized = std::exchange(resized_, Resized::no);
  if (resized == Resized::moved) return;  // the version names what it left
  if (mode() == ArrayMode::log) {
    for (PageSet& stale : stale_) stale.add(changed_);
    if (resized == Resized::no) {
      stale_[working_copy_].clear();
      changed_.clear();
    }
  }
  if (device_buffer_) device_buffer_->commit(named.copy);
  entry_.copy = named.copy;
  entry_.table_checksum = named.table_checksum;
  saved_copy_ = no_copy;
  committed_ = true;
  streamed_begin_ = streamed_end_ = 0;
}

void VersionedArray::retract() {
  resized_ = Resized::no;
  wake();
  saved_copy_ = no_copy;
  saved_from_device_.reset();
  if (device_buffer_) device_buffer_->retract();
  if (checked_) checked_->allow_only(working_copy_);
  streamed_begin_ = streamed_end_ = 0;
}

}  // namespace perdure
