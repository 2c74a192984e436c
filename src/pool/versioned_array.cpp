// SPDX-License-Identifier: BSD-3-Clause
#include "pool/versioned_array.hpp"

#include <algorithm>
#include <cstring>

#include "pool/block_checksum.hpp"
#include "pool/copy_check.hpp"
#include "pool/device_buffer.hpp"

namespace perdure {
namespace {

// Where an array without elements lies that has no buffer on its device.
std::byte nothing_on_device;

}  // namespace

VersionedArray::VersionedArray(const ArraySurroundings& surroundings, const ArrayEntry& entry,
                               std::uint32_t slots, const ArrayOptions& options)
    : with_(surroundings),
      entry_(entry),
      resizable_(options.of_program && !options.staged),
      memory_(static_cast<std::byte*>(options.buffer), options.keep_contents),
      copies_(slots),
      twin_writer_(options.writer) {
  if (mode() != ArrayMode::log) return;
  changes_.emplace(ChangedPages::Asked{options.marks, options.compare, options.tracker},
                   entry_.size_bytes);
}

VersionedArray::~VersionedArray() = default;

// Of contents that are in no copy yet.
void VersionedArray::make_tables() {
  tables_.make(entry_, with_.block_bytes);
  if (changes_) changes_->begin(entry_.size_bytes, unit_bytes(), entry_.copies);
}

Result<std::unique_ptr<VersionedArray>> VersionedArray::create(Device& device,
                                                               ParallelWriter& writer,
                                                               const ArrayEntry& entry,
                                                               const Geometry& geometry,
                                                               const ArrayOptions& options) {
  std::unique_ptr<VersionedArray> array(
      new VersionedArray({device, writer, options.accelerators, geometry.block_bytes}, entry,
                         geometry.slots, options));
  PERDURE_TRY(array->check_options(options));
  PERDURE_TRY(array->allocate(options));
  array->make_tables();
  array->choose_working();
  return array;
}

Status VersionedArray::check_options(const ArrayOptions& options) const {
  const auto invalid = [this](const char* what) {
    return Status(Code::invalid_argument, "array ", quoted(name()), ": ", what);
  };
  const bool log = mode() == ArrayMode::log;
  if ((options.marks || options.compare) && !log) {
    return invalid("marks and compare are for log mode");
  }
  if (options.marks && options.compare) {
    return invalid("marks contradict compare: changes are found either way");
  }
  if (memory_.at() != nullptr && mode() != ArrayMode::copy && !log) {
    return invalid(
        "an array in twin or flush mode lives in the pool and takes no buffer: leave it out, or "
        "open the array in copy mode, which takes memory of the host or of a GPU and has two "
        "versions in the pool as twin does");
  }
  if (twin_writer_ != nullptr && (mode() != ArrayMode::twin || entry_.shape.checksums)) {
    return invalid("only a twin array without checksums can have a writer");
  }
  if (options.staged && mode() != ArrayMode::copy && !(log && options.compare)) {
    return invalid("only copy mode, and log mode with compare, can be staged");
  }
  return Status::success();
}

Status VersionedArray::make_checked_copies() {
  PERDURE_TRY_ASSIGN(checked_, CheckedCopies::create(with_.device, entry_));
  return Status::success();
}

Status VersionedArray::take_entry(const ArrayEntry& entry) {
  const bool moves = !entry.same_places(entry_);
  const bool resizes = entry.shape != entry_.shape || entry.checksum != entry_.checksum;
  entry_ = entry;
  if (resizes) PERDURE_TRY(fit());
  if (moves && !resizes && device_buffer_) {
    PERDURE_TRY(named(device_buffer_->fit(entry_, memory_.at())));
  }
  return checked_ && (moves || resizes) ? make_checked_copies() : Status::success();
}

Status VersionedArray::allocate(const ArrayOptions& options) {
  if (mode() == ArrayMode::copy || mode() == ArrayMode::log) return allocate_buffer(options);
  if (mode() != ArrayMode::twin || !options.of_program) return Status::success();
  PERDURE_TRY_ASSIGN(const bool checked, checks_stores());
  return checked ? make_checked_copies() : Status::success();
}

Status VersionedArray::allocate_buffer(const ArrayOptions& options) {
  if (options.staged) {
    PERDURE_TRY_ASSIGN(auto staging, ArrayBuffer::make(entry_.size_bytes, is_paged()));
    memory_.wait_in(std::move(staging));
  }
  if (options.device != nullptr) {
    if (memory_.at() == nullptr && entry_.size_bytes == 0) memory_.use_given(&nothing_on_device);
    PERDURE_TRY(take_device_buffer(*with_.accelerators->by(*options.device), memory_.at()));
  } else if (memory_.at() != nullptr) {
    PERDURE_TRY(check_buffer(memory_.at(), entry_.size_bytes));
  }
  if (memory_.at() == nullptr) {
    PERDURE_TRY_ASSIGN(auto own, ArrayBuffer::make(entry_.size_bytes, is_paged()));
    memory_.use_own(std::move(own));
  }
  memory_.unstage();
  return follow(memory_.at(), entry_.size_bytes);
}

Status VersionedArray::follow(std::byte* at, std::uint64_t size_bytes) {
  return changes_ ? named(changes_->follow(at, size_bytes)) : Status::success();
}

// Where others store to the buffer, no tracker sees it; and one needs whole pages, which malloc()
// and std::vector seldom give.
Status VersionedArray::check_buffer(std::byte* buffer, std::uint64_t size_bytes) {
  if (with_.accelerators != nullptr) {
    const auto accelerator = with_.accelerators->of(buffer, size_bytes);
    if (!accelerator.ok()) return named(accelerator.status());
    if (accelerator.value() != nullptr) return take_device_buffer(*accelerator.value(), buffer);
  }
  const auto stores = memory_.check(buffer, size_bytes);
  if (!stores.ok()) return named(stores.status());
  const bool can_be_tracked =
      stores.value() == Stores::by_this_mapping && PageTracker::can_watch(buffer);
  if (is_paged() && !can_be_tracked) changes_->set_way(ChangedPages::Way::comparison);
  return Status::success();
}

// From the opening on.
Status VersionedArray::take_device_buffer(Accelerator& accelerator, std::byte* buffer) {
  const auto refused = [this](const char* what) {
    return Status(Code::unsupported, "array ", quoted(name()), ": ", what);
  };
  if (life_ != Life::opened) {
    return refused(
        "its buffer was in the host's memory and can't become one of a GPU: remove the "
        "array and open it anew");
  }
  if (changes_ && (changes_->was_told_how() || !entry_.shape.checksums)) {
    return refused(
        "in memory of a GPU, log mode finds what changed by the checksums of pages: "
        "leave PERDURE_MARKS, PERDURE_COMPARE and PERDURE_NO_CHECKSUM out");
  }
  auto made = DeviceBuffer::open(with_, accelerator, entry_, buffer);
  if (!made.ok()) return named(made.status());
  device_buffer_ = made.take();
  changes_.reset();
  return Status::success();
}

// What happens to the memory later says nothing of the buffer.
void VersionedArray::lose_buffer(const char* how) {
  if (memory_.lose(how) && changes_) changes_->stop(true);
}

void VersionedArray::move_buffer() {
  if (changes_) changes_->expose();
}

void VersionedArray::end_move_of_buffer(bool kept) {
  if (kept) return;
  (void)memory_.lose("moved by realloc()");
  if (changes_) changes_->stop(false);
}

Status VersionedArray::check_buffer_here() const {
  if (given_buffer() == nullptr) return Status::success();
  const char* const how = memory_.how_lost();
  const bool in_host = device_buffer_ == nullptr;
  if (in_host && how == nullptr && is_mapped(memory_.at(), entry_.size_bytes)) {
    return Status::success();
  }
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

void VersionedArray::take_part(std::uint64_t version, std::size_t place) {
  participation_.take_part(version, place);
  if (is_marked()) participation_.rest();
  resized_ = Resized::no;
  if (checked_) checked_->allow_none();
}

void VersionedArray::choose_working() {
  if (mode() == ArrayMode::flush) return;
  copies_.choose_working(entry_.copy, entry_.copies,
                         twin_writer_ != nullptr && life_ != Life::opened);
  if (checked_) checked_->allow_only(working_copy());
}

void VersionedArray::work_on(std::uint32_t copy) {
  PERDURE_ASSERT(twin_writer_ != nullptr);
  copies_.work_on(copy);
}

bool VersionedArray::move_on() {
  PERDURE_ASSERT(twin_writer_ != nullptr);
  return copies_.move_on(entry_.copy, entry_.copies);
}

std::byte* VersionedArray::working() {
  return memory_.at() != nullptr ? memory_.at() : seen_address(working_copy());
}

const std::byte* VersionedArray::consistent() const {
  return memory_.at() != nullptr ? memory_.at() : seen_address(entry_.copy);
}

// No version of now names the array.
Status VersionedArray::begin_empty(const ArrayEntry& entry) {
  PERDURE_TRY(check_buffer_here());
  stores_.clear();
  PERDURE_TRY(take_entry(entry));
  if (life_ != Life::opened) life_ = Life::started;
  if (mode() != ArrayMode::flush) {
    entry_.copy = copies_.lowest_unnamed();
    PERDURE_ASSERT(entry_.copy < entry_.copies);
  }
  choose_working();
  if (changes_) changes_->add_all();
  return Status::success();
}

Status VersionedArray::start_empty(const ArrayEntry& entry) {
  PERDURE_TRY(begin_empty(entry));
  const bool restarted = std::exchange(life_, Life::started) != Life::opened;
  const bool keeps = mode() == ArrayMode::flush && restarted;
  if (memory_.is_filled() && !restarted) {
    // As the application has filled it.
  } else if (device_buffer_) {
    PERDURE_TRY(named(device_buffer_->clear()));
  } else if (memory_.at() != nullptr) {
    std::memset(memory_.at(), 0, entry_.size_bytes);
  } else if (!keeps && twin_writer_ == nullptr) {
    for (std::uint32_t copy = 0; copy < entry_.copies; ++copy) {
      if (!copies_.is_named(copy)) std::memset(copy_address(copy), 0, entry_.size_bytes);
    }
  }
  participation_.wake(*this);
  return watch();
}

Status VersionedArray::start_filled(const ArrayEntry& entry,
                                    const std::function<Status(VersionedArray&)>& fill) {
  PERDURE_TRY(begin_empty(entry));
  life_ = Life::started;
  PERDURE_TRY(fill(*this));
  if (device_buffer_) PERDURE_TRY(named(device_buffer_->fill(working_copy())));
  if (is_marked()) PERDURE_TRY(mark(0, entry_.size_bytes));
  participation_.wake(*this);
  return watch();  // what it held before is no change of the program's
}

std::byte* VersionedArray::first_buffer() const {
  if (on_device()) return nullptr;
  return twin_writer_ != nullptr ? twin_writer_->memory() : memory_.at();
}

void VersionedArray::store_first(std::uint64_t first_byte, std::span<const std::byte> bytes) {
  if (first_buffer() != nullptr) {
    std::memcpy(first_buffer() + first_byte, bytes.data(), bytes.size());
  } else if (!bytes.empty()) {
    with_.device.copy(entry_.copy_offset(working_copy()) + first_byte, bytes.data(), bytes.size());
  }
}

void VersionedArray::clear_first() {
  std::byte* const at = first_buffer() != nullptr ? first_buffer() : copy_address(working_copy());
  if (entry_.size_bytes != 0) std::memset(at, 0, entry_.size_bytes);
}

void VersionedArray::show_first() {
  if (mode() != ArrayMode::twin || twin_writer_ != nullptr) return;
  entry_.copy = working_copy();
  choose_working();
}

Status VersionedArray::start_restored(const ArrayEntry& entry) {
  PERDURE_TRY(check_buffer_here());
  stores_.clear();
  PERDURE_TRY(take_entry(entry));
  life_ = Life::committed;
  choose_working();
  const CopySums sums = tables_.of(entry_.copy);
  if (device_buffer_) {
    const Status loaded = device_buffer_->load(entry_, sums);
    if (!loaded.ok()) return loaded.code() == Code::damaged ? loaded : named(loaded);
  } else if (mode() != ArrayMode::flush) {
    PERDURE_TRY(verify_and_copy(with_.device, entry_, with_.block_bytes, memory_.at(),
                                tables_.is_there() ? &sums.of_blocks : nullptr, sums.of_pages));
  }
  if (!changes_) return Status::success();
  changes_->restore(entry_.copy);
  if (is_marked()) participation_.rest();
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
    PERDURE_TRY(named(device_buffer_->fit(entry_, memory_.at())));
  } else if (memory_.at() != nullptr) {
    PERDURE_TRY(fit_buffer());
  }
  make_tables();
  return Status::success();
}

Status VersionedArray::fit_buffer() {
  if (changes_) changes_->choose_way(entry_.size_bytes);
  if (memory_.given() != nullptr) {
    PERDURE_TRY(check_buffer(memory_.at(), entry_.size_bytes));
  } else if (!memory_.has_room(entry_.size_bytes, is_paged())) {
    PERDURE_TRY_ASSIGN(auto own, ArrayBuffer::make(entry_.stride_bytes, is_paged()));
    if (changes_) changes_->leave();
    memory_.use_own(std::move(own));
  }
  return follow(memory_.at(), entry_.size_bytes);
}

// The buffer, with the contents, is memory of the same GPU.
Status VersionedArray::resize_device_buffer(std::byte* given, const ArrayEntry& entry) {
  const DeviceFunctions* const functions = device_buffer_->accelerator().functions();
  if (functions != nullptr && given == nullptr && entry.size_bytes == 0) given = &nothing_on_device;
  const auto accelerator = functions == nullptr || given == nullptr
                               ? with_.accelerators->of(given, entry.size_bytes)
                               : Result<Accelerator*>(with_.accelerators->by(*functions));
  if (!accelerator.ok()) return named(accelerator.status());
  if (accelerator.value() != &device_buffer_->accelerator()) {
    return Status(Code::unsupported, "array ", quoted(name()),
                  " is in memory of a GPU and stays on it: say where it is there now");
  }
  const bool was_here = check_buffer_here().ok();
  Status fits = named(device_buffer_->fit(entry, given));
  if (!fits.ok()) {
    (void)device_buffer_->fit(entry_, memory_.at());
    if (!was_here) lose_buffer("freed");
    return fits;
  }
  memory_.use_given(given);
  return Status::success();
}

// Whether the contents, of that size, can be there from now on.
Status VersionedArray::check_given(std::byte* given, std::uint64_t size_bytes) {
  const bool compared = changes_ && changes_->way() == ChangedPages::Way::comparison;
  if (changes_) changes_->choose_way(size_bytes);
  const bool reaches = mode() == ArrayMode::copy && memory_.reaches(size_bytes);
  const bool is_known = given == memory_.given() && memory_.how_lost() == nullptr;
  if (!is_known || (size_bytes > entry_.size_bytes && !reaches)) {
    return check_buffer(given, size_bytes);
  }
  if (compared) changes_->set_way(ChangedPages::Way::comparison);  // as it was found to be
  return Status::success();
}

// copy and log. `other_contents`: no copy is known to have any of them.
Status VersionedArray::resize_buffer(std::byte* given, const ArrayEntry& entry,
                                     bool& other_contents) {
  const std::uint64_t size = entry.size_bytes;
  const std::uint64_t before = entry_.size_bytes;
  const auto way = changes_ ? changes_->way() : ChangedPages::Way::comparison;
  const auto as_before = [this, way](const Status& status) {
    if (changes_) changes_->set_way(way);
    return status;
  };
  ArrayBuffer made;
  if (given != nullptr) {
    if (Status fits = check_given(given, size); !fits.ok()) return as_before(fits);
  } else {
    if (size != 0 && !check_buffer_here().ok()) {
      return Status(Code::invalid_argument, "array ", quoted(name()),
                    " had a buffer of the program, which is gone: say where it lies now");
    }
    if (changes_) changes_->choose_way(size);
    if (!memory_.has_room(size, is_paged())) {
      auto memory = ArrayBuffer::make(entry.stride_bytes, is_paged());
      if (!memory.ok()) return as_before(memory.status());
      made = memory.take();
      if (size != 0 && before != 0) std::memcpy(made.at(), memory_.at(), std::min(before, size));
    }
  }
  const bool moves = given != nullptr || made.is_there();
  std::byte* const at = given != nullptr ? given : moves ? made.at() : memory_.at();
  // What lies where memory was that went is as new as what lies elsewhere.
  const bool is_there = at == memory_.at() && memory_.how_lost() == nullptr;
  other_contents = !is_there && !made.is_there();
  if (changes_ && !other_contents) other_contents = !changes_->end_following().ok();
  if (Status followed = follow(at, size); !followed.ok()) {
    changes_->follow_again(memory_.at(), before, way);
    return followed;
  }
  if (!moves && size > before) std::memset(at + before, 0, size - before);
  if (made.is_there()) {
    memory_.use_own(std::move(made));
  } else if (moves) {
    memory_.use_given(at);
  }
  memory_.unstage();
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
  stores_.clear();
  const ArrayEntry from = std::exchange(entry_, entry);
  const bool moves = from.first_offset != entry_.first_offset;
  const std::uint32_t worked_on = working_copy();
  if (moves) {
    entry_.copy = 0;
    if (life_ == Life::committed) life_ = Life::left;
    copies_.forget_named();
    copies_.end_version();  // which names what it left
    make_tables();
    choose_working();
  } else {
    entry_.copy = from.copy;
    entry_.table_checksum = from.table_checksum;
    tables_.resize(entry_.size_bytes);
    if (changes_) changes_->resize(from.size_bytes, entry_.size_bytes, other_contents);
  }
  if (resized_ != Resized::moved) resized_ = moves ? Resized::moved : Resized::in_place;
  if (mode() != ArrayMode::twin || twin_writer_ != nullptr) return;
  const std::byte* const base = with_.device.base();
  keep_copy(base + from.copy_offset(from.copy), from.size_bytes, entry_.copy);
  keep_copy(base + from.copy_offset(worked_on), from.size_bytes, working_copy());
}

Status VersionedArray::resize(const ArrayEntry& entry, void* buffer) {
  bool other_contents = false;
  std::unique_ptr<CheckedCopies> checked;
  if (mode() == ArrayMode::twin) {
    if (buffer != nullptr) {
      return Status(Code::invalid_argument, "array ", quoted(name()),
                    ": in twin mode it lives in the pool and takes no buffer: leave it out, or "
                    "remove the array and open it in copy mode");
    }
    if (checked_) {
      PERDURE_TRY_ASSIGN(checked, CheckedCopies::create(with_.device, entry));
    }
  } else if (device_buffer_) {
    other_contents = true;
    PERDURE_TRY(resize_device_buffer(static_cast<std::byte*>(buffer), entry));
  } else {
    PERDURE_TRY(resize_buffer(static_cast<std::byte*>(buffer), entry, other_contents));
  }
  if (checked_) checked_ = std::move(checked);
  take_size(entry, other_contents);
  if (checked_) checked_->allow_only(working_copy());
  participation_.wake(*this);
  if (!watch().ok()) changes_->set_way(ChangedPages::Way::comparison);
  return Status::success();
}

Status VersionedArray::watch() {
  return changes_ ? named(changes_->watch()) : Status::success();
}

void VersionedArray::report_to(Woken& list, std::uint64_t number) {
  participation_.report_to(list, number);
  if (is_marked() && !is_idle()) list.emplace(number, this);
}

Status VersionedArray::mark(std::uint64_t first_byte, std::uint64_t count_bytes) {
  if (!is_marked()) {
    return {Code::wrong_state, "array " + quoted(name()) + " was not opened with PERDURE_MARKS"};
  }
  if (count_bytes == 0) return Status::success();
  changes_->mark({first_byte, first_byte + count_bytes});
  participation_.wake(*this);
  return Status::success();
}

Status VersionedArray::write(std::uint64_t first_byte, std::uint64_t count_bytes,
                             const void* source) {
  if (mode() != ArrayMode::twin) {
    return Status(Code::wrong_state, "perdure_write is for twin arrays; ", quoted(name()),
                  " is in ", mode_name(mode()), " mode");
  }
  const auto elements = TwinStores::look_at(with_, source, count_bytes);
  if (!elements.ok()) return named(elements.status());
  const bool of_host = elements.value().accelerator == nullptr;
  return named(of_host
                   ? stores_.store(with_, entry_, working_copy(), first_byte, elements.value())
                   : stores_.transfer(with_, entry_, working_copy(), first_byte, elements.value()));
}

Status VersionedArray::settle_writes() {
  return named(stores_.settle());
}

Status VersionedArray::collect_changes() {
  PERDURE_TRY(check_buffer_here());
  memory_.unstage();
  saved_from_device_.reset();
  if (device_buffer_) {
    PERDURE_TRY(named(device_buffer_->take(working_copy())));
    if (!device_buffer_->must_be_saved_at_once()) return Status::success();
    PERDURE_TRY_ASSIGN(saved_from_device_, save_from_device());
    return Status::success();
  }
  return changes_ ? named(changes_->collect()) : Status::success();
}

void VersionedArray::stage() {
  PERDURE_ASSERT(staged());
  memory_.stage(entry_.size_bytes);
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

Result<std::uint64_t> VersionedArray::save_from_device() {
  if (saved_from_device_) return *std::exchange(saved_from_device_, std::nullopt);
  auto saved = device_buffer_->save(
      working_copy(), tables_.of(working_copy()),
      [this](PageRun run, const std::byte* from) { return save_pages(run, from); });
  if (!saved.ok()) return named(saved.status());
  store_table();
  return saved;
}

// They are in the host's memory from `from` on.
Status VersionedArray::save_pages(PageRun run, const std::byte* from) {
  if (run.empty()) return Status::success();
  const std::uint64_t begin = run.first * unit_bytes();
  const std::uint64_t end = std::min(run.end * unit_bytes(), entry_.size_bytes);
  const std::uint64_t offset = entry_.copy_offset(working_copy()) + begin;
  if (!entry_.shape.checksums) return with_.writer.copy(offset, from, end - begin);
  PERDURE_TRY(with_.writer.copy_with_checksums(
      offset, from, end - begin,
      {of_one_page(entry_.checksum), unit_bytes(), tables_.units_of(working_copy()) + run.first}));
  tables_.sum_blocks_of(working_copy(), run);  // pool.A3
  return Status::success();
}

Result<std::uint64_t> VersionedArray::save_copy() {
  PERDURE_TRY(save_pages({0, block_count(entry_.size_bytes, unit_bytes())}, memory_.source()));
  store_table();
  return entry_.size_bytes;
}

// A copy that was never committed holds nothing that a version could name.
bool VersionedArray::unchanged() const {
  return twin_writer_ != nullptr && committed() && !twin_writer_->changed();
}

// Flush mode as well: its one copy is the working one.
Result<std::uint64_t> VersionedArray::save_twin() {
  if (unchanged()) return std::uint64_t{0};
  if (twin_writer_ != nullptr) return twin_writer_->save();
  PERDURE_TRY(named(stores_.settle()));
  const std::uint64_t offset = entry_.copy_offset(working_copy());
  const ByteRange& streamed = stores_.streamed();
  if (streamed.begin > 0) PERDURE_TRY(with_.writer.flush(offset, streamed.begin));
  if (streamed.end < entry_.size_bytes) {
    PERDURE_TRY(with_.writer.flush(offset + streamed.end, entry_.size_bytes - streamed.end));
  }
  if (tables_.is_there()) tables_.sum(working_copy(), copy_address(working_copy()));
  store_table();
  return entry_.size_bytes - (streamed.end - streamed.begin);
}

Result<std::uint64_t> VersionedArray::save_log() {
  const PageSet& lacking = changes_->lacking(working_copy(), {memory_.source(), entry_.size_bytes},
                                             committed() ? copy_address(entry_.copy) : nullptr);
  std::uint64_t saved_bytes = 0;
  for (PageRun run = lacking.next_run(0); !run.empty(); run = lacking.next_run(run.end)) {
    const std::uint64_t begin = run.first * unit_bytes();
    PERDURE_TRY(save_pages(run, memory_.source() + begin));
    saved_bytes += std::min(run.end * unit_bytes(), entry_.size_bytes) - begin;
  }
  store_table();
  return saved_bytes;
}

// The copy that the next version names.
std::uint32_t VersionedArray::copy_of_next() const {
  return unchanged() ? entry_.copy : copies_.saved();
}

std::uint64_t VersionedArray::checksum_of_next() const {
  return tables_.is_there() ? tables_.checksum_of(working_copy()) : entry_.table_checksum;
}

void VersionedArray::commit(const LeafEntry& named) {
  const Resized resized = std::exchange(resized_, Resized::no);
  if (resized == Resized::moved) {  // the version names what it left
    life_ = Life::left;
    return;
  }
  if (changes_) changes_->commit(working_copy(), resized == Resized::no);
  if (device_buffer_) device_buffer_->commit(named.copy);
  entry_.copy = named.copy;
  entry_.table_checksum = named.table_checksum;
  copies_.end_version();
  life_ = Life::committed;
  stores_.clear();
}

void VersionedArray::retract() {
  resized_ = Resized::no;
  participation_.wake(*this);
  copies_.end_version();
  saved_from_device_.reset();
  if (device_buffer_) device_buffer_->retract();
  if (checked_) checked_->allow_only(working_copy());
  stores_.clear();
}

}  // namespace perdure
