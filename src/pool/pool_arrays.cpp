// SPDX-License-Identifier: BSD-3-Clause
//
// Pool: opening, loading and closing of arrays, and scalars.
#include <algorithm>

#include "base/agreement.hpp"
#include "device/accelerators.hpp"
#include "pool/pool.hpp"

namespace perdure {

// The name may be used: it is not open, and no commit under way decides what it holds.
Status Pool::check_closed(const std::string& name, std::uint32_t part) const {
  if (next_.arrays().is_open({name, part})) {
    return Status(Code::invalid_argument, "array ", quoted(name), " is open");
  }
  const auto kept = [&](const VersionUnderWay::RetiredArray& held) {
    return !held.erase && held.array->part() == part && held.array->name() == name;
  };
  const VersionUnderWay* version = under_way_.pending_version();
  if (version != nullptr && std::ranges::any_of(version->retired, kept)) {
    return Status(
        Code::wrong_state, "array ", quoted(name),
        " was closed during a commit; call perdure_commit_wait() before opening it again");
  }
  return Status::success();
}

// Before the device grows, which nobody may use meanwhile.
void Pool::wait_for_saver() {
  if (under_way_.saving()) saver_->wait_until_idle();
}

// pool.G4 of catalogue_pages.hpp.
Status Pool::make_room_for_catalogue() {
  if (kept_.has_room_for(next_.catalogue())) return Status::success();
  wait_for_saver();
  return kept_.make_room_for(next_.catalogue());
}

namespace {

// A GPU computes XXH3. What windows and in-place versioning give is the host's.
std::optional<DataChecksum> checksum_for(const void* buffer, bool of_program) {
  const bool may_be = buffer != nullptr && of_program;
  const bool on_device =
      may_be && kind_of(static_cast<const std::byte*>(buffer)) != MemoryKind::host;
  return on_device ? std::optional(DataChecksum::xxh3) : std::nullopt;
}

}  // namespace

// Makes the entry of a new array, and room for it.
Status Pool::plan_array(const std::string& name, const ArrayShape& shape,
                        const ArrayOptions& options) {
  PERDURE_TRY_ASSIGN(auto entry,
                     lay_out(name, options.part, shape, region_.geometry, options.spare_copy,
                             checksum_for(options.buffer, options.of_program)));
  kept_.place(entry);
  const std::uint64_t end = entry.hold->extent().end;
  if (end > device_->size_bytes()) {
    wait_for_saver();
    PERDURE_TRY(grow_device(*device_, end));
  }
  const ArrayId id = next_.arrays().insert_entry(std::move(entry));
  const Status room = make_room_for_catalogue();
  if (!room.ok()) next_.arrays().erase_entry(id);
  return room;
}

Result<VersionedArray*> Pool::add_array(ArrayId entry, bool known, const ArrayOptions& options) {
  ArrayOptions with = options;
  if (options.of_program) with.accelerators = accelerators_.get();
  PERDURE_TRY_ASSIGN(auto array,
                     VersionedArray::create(*device_, writer_, next_.catalogue().arrays.at(entry),
                                            region_.geometry, with));
  OpenArrays::OpenArray open{std::move(array), entry, known};
  if (restarted()) PERDURE_TRY(load_array(open));
  return &next_.arrays().add(std::move(open));
}

Result<VersionedArray*> Pool::open_array(const std::string& name, const ArrayShape& shape,
                                         const ArrayOptions& options) {
  PERDURE_TRY(check_usable());
  PERDURE_TRY(life_.check_open_to_others());
  PERDURE_TRY(check_closed(name, options.part));
  // What accelerators have is the saver's until then.
  if (options.device != nullptr || checksum_for(options.buffer, options.of_program)) {
    wait_for_saver();
  }
  const OpenArrays::Key key{name, options.part};
  const bool known = next_.arrays().find_entry(key) != nullptr;
  if (!known) PERDURE_TRY(plan_array(name, shape, options));
  const ArrayId entry = *next_.arrays().find_entry(key);
  if (const ArrayShape& held = next_.catalogue().arrays.shared_at(entry).shape; !(held == shape)) {
    const Status other(Code::shape_mismatch, "array ", quoted(name), " is ", held.text(),
                       " in the pool, not ", shape.text(),
                       "; open it as it is, or use another name or another pool");
    run_page_.set_refused(other);
    return other;
  }
  auto added = add_array(entry, known, options);
  if (!added.ok() && !known) next_.arrays().erase_entry(entry);
  if (added.ok() && change_ && (!restarted() || change_->takes_late())) {
    change_->say(name, options.ranks);
    if (options.writer != nullptr) change_->note_lacking();
  }
  return added;
}

Result<VersionedArray*> Pool::open_array_on_all(const std::string& name, const ArrayShape& shape,
                                                const ArrayOptions& options, const Status& local,
                                                const std::optional<GlobalBox>& box) {
  const CollectiveCall call(group_, "the opening of an array on all ranks");
  const auto box_before = box ? next_.boxes().noted({name, options.part}) : std::nullopt;
  auto opened = local.ok() ? open_array(name, shape, options) : Result<VersionedArray*>(local);
  Status own = opened.status();
  if (own.ok() && box) own = set_box(*opened.value(), *box);
  Status all = agree(group_, own);
  if (all.ok() && change_) all = take_late(*opened.value(), options.ranks);
  if (all.ok()) return opened;
  if (opened.ok()) {  // the file may have grown, which the next array will use
    const OpenArrays::OpenArray undone = next_.arrays().take(*opened.value(), restarted());
    if (!undone.known) next_.arrays().erase_entry(undone.entry);
    if (box) next_.boxes().undo({name, options.part}, box_before);
  }
  return all;
}

Status Pool::set_box(const VersionedArray& array, GlobalBox box) {
  return next_.boxes().say(array, std::move(box),
                           [this] { return check_room_for("the box of an array"); });
}

Status Pool::close_array(VersionedArray* array, bool erase) {
  if (next_.arrays().find(*array) == nullptr) {
    return {Code::invalid_argument, "this is not an open array of the pool"};
  }
  VersionUnderWay* version = under_way_.pending_version();
  const bool part_of_commit = version != nullptr && version->has(*array);
  if (part_of_commit) PERDURE_TRY(wait_until_saved(*array));
  OpenArrays::OpenArray closed = next_.arrays().take(*array, restarted());
  if (change_ && !erase) change_->note_gone(array->name());
  // The head may have one of that name that was erased since, which it is not.
  const bool goes = erase || !(closed.known || array->is_held() || part_of_commit);
  const SaidBoxes::Key key{array->name(), array->part()};
  if (part_of_commit) {
    closed.array->stop_following();
    version->retired.push_back({std::move(closed.array), goes});
  }
  if (goes) {
    next_.arrays().erase_entry(closed.entry);
  } else if (!part_of_commit) {
    next_.arrays().take_entry_of(retained().arrays_of(head()), closed.entry);
  }
  next_.leave_box(key);
  return Status::success();
}

// What a twin array gets back would be zeros, which can't be stored to the copy that the newest
// version names: it was larger there.
bool Pool::must_leave(const VersionedArray& array, const OpenArrays::OpenArray& open) const {
  const LeafEntry* const held = retained().arrays_of(head()).find(open.entry);
  return array.mode() == ArrayMode::twin && held != nullptr &&
         held->shared->entry.size_bytes > array.size_bytes();
}

Result<OpenArrays::OpenArray*> Pool::find_to_resize(const VersionedArray& array) {
  PERDURE_TRY(check_usable());
  OpenArrays::OpenArray* const open = next_.arrays().find(array);
  if (open == nullptr) {
    return Status(Code::invalid_argument, "this is not an open array of the pool");
  }
  if (!restarted()) {
    return Status(Code::wrong_state, "array ", quoted(array.name()),
                  " has no contents before perdure_restart(): resize it after that");
  }
  return open;
}

Status Pool::resize_array(VersionedArray& array, const std::vector<std::uint64_t>& extents,
                          void* buffer) {
  PERDURE_TRY_ASSIGN(OpenArrays::OpenArray* const open, find_to_resize(array));
  ArrayShape shape = array.entry().shape;
  shape.extents = extents;
  PERDURE_TRY(array.check_resizable(shape));
  VersionUnderWay* const version = under_way_.pending_version();
  if (version != nullptr && version->has(array)) {
    if (array.mode() == ArrayMode::twin) {
      return Status(Code::wrong_state, "array ", quoted(array.name()),
                    " is being committed where it is: call perdure_commit_wait() first");
    }
    PERDURE_TRY(wait_until_saved(array));
    version->name_copy_of(array);
  }
  if (array.on_device()) wait_for_saver();
  return give_size(*open, shape, must_leave(array, *open), buffer);
}

// Its writer has saved what the version under way holds of it, where it is now.
Status Pool::resize_written(VersionedArray& array, std::uint64_t bytes, bool elsewhere) {
  PERDURE_TRY_ASSIGN(OpenArrays::OpenArray* const open, find_to_resize(array));
  PERDURE_ASSERT(array.has_writer());
  ArrayShape shape = array.entry().shape;
  shape.extents = {bytes};
  VersionUnderWay* const version = under_way_.captured_version();
  if (version != nullptr && version->has(array)) {
    PERDURE_ASSERT(version->is_saved);
    version->name_copy_of(array);
  }
  return give_size(*open, shape, elsewhere, nullptr);
}

// Local. What the versions name of the extent that it leaves stays known.
Status Pool::give_size(OpenArrays::OpenArray& open, const ArrayShape& shape, bool leave,
                       void* buffer) {
  VersionedArray& array = *open.array;
  PERDURE_TRY_ASSIGN(const auto next, resized(array.entry(), shape, leave, kept_.space(),
                                              region_.geometry, checksum_for(buffer, true)));
  const std::shared_ptr<ExtentHold> left = array.entry().hold;
  const bool moves = next.hold != left;
  if (next.hold->extent().end > device_->size_bytes()) {
    wait_for_saver();
    PERDURE_TRY(grow_device(*device_, next.hold->extent().end));
  }
  const auto named = moves ? array.named() : std::vector<std::uint8_t>();
  PERDURE_TRY(array.resize(next, buffer));
  if (moves) {
    left->named = named;
    left->seen = array.seen();
    retained().tell_none(*next.hold);
    array.set_seen(next.hold->seen);
  }
  next_.arrays().replace_entry(open.entry, array.entry());
  next_.boxes().forget({array.name(), array.part()});
  return Status::success();
}

// Which of its copies the versions name.
void Pool::tell_named(VersionedArray& array, ArrayId id) const {
  const ArrayEntry entry = next_.catalogue().arrays.at(id);
  retained().tell(*entry.hold, entry.copy);
  for (std::uint32_t slot = 0; slot < kept_.slots().count(); ++slot) {
    const bool is_open = slot == open_slot_index();
    array.note_named(slot, is_open ? VersionedArray::no_copy : entry.hold->named[slot]);
  }
  array.set_seen(entry.hold->seen);
}

Status Pool::load_array(OpenArrays::OpenArray& open) {
  const ArrayEntry entry = next_.catalogue().arrays.at(open.entry);
  VersionedArray& array = *open.array;
  tell_named(array, open.entry);
  return located(open.known ? array.start_restored(entry) : array.start_empty(entry));
}

Status Pool::load_all() {
  const TokenScope token(options_.token.get(), IoKind::read);
  for (auto& [number, open] : next_.arrays()) PERDURE_TRY(load_array(open));
  return Status::success();
}

// What was added to the next version has room in a slot.
Status Pool::check_room_for(const std::string& what) {
  PERDURE_TRY(make_room_for_catalogue());
  const Slots& slots = kept_.slots();
  if (body_bytes_with_tree(next_.catalogue()) > slots.body_bytes_max() &&
      !slots.has_room_for_arrays(next_.catalogue())) {
    return Status(Code::no_space, "the pool's slots have no room for ", what);
  }
  return Status::success();
}

Status Pool::bind_scalar(const std::string& name, void* address, std::size_t bytes,
                         ScalarType type) {
  PERDURE_TRY(check_usable());
  if (change_ && change_->takes_late()) PERDURE_TRY(check_late_scalar(name));
  PERDURE_TRY_ASSIGN(const bool is_new,
                     next_.scalars().bind(name, type, address, bytes, restarted()));
  if (!is_new) return Status::success();
  const Status room = check_room_for("scalar " + quoted(name));
  if (!room.ok()) next_.scalars().undo_bind();
  return room;
}

Status Pool::take_newest_file() {
  if (restarted()) PERDURE_TRY(next_.files().bring_back_newest());
  PERDURE_TRY_ASSIGN(const bool is_new, next_.files().note_newest());
  if (!is_new) return Status::success();
  const Status room = check_room_for("the note of a file");
  if (!room.ok()) next_.files().undo_note();
  return room;
}

Status Pool::name_file(const std::string& path, std::FILE* stream) {
  PERDURE_TRY(check_usable());
  if (NotedFile* const known = next_.files().find(path)) return known->set_stream(stream);
  PERDURE_TRY_ASSIGN(auto file, NotedFile::open(path, stream));
  for (const Companion* companion : companions_) {
    if (companion->name() == "file " + file.full_path()) return not_both(file.full_path());
  }
  next_.files().add(std::move(file));
  const Status taken = take_newest_file();
  if (!taken.ok()) next_.files().drop_newest();
  return taken;
}

}  // namespace perdure
